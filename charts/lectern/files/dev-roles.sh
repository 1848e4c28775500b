# Makes the databases and roles of docs/how-to/operate.md, all with one password: this Postgres is for development.
for service in entries embeddables experiments region auth; do
  psql -v ON_ERROR_STOP=1 --no-psqlrc --username "${POSTGRES_USER:-postgres}" --dbname postgres \
    -v database="$service" -v owner="${service}_owner" -v reader="${service}_reader" -v ingest="${service}_ingest" \
    -v remover="${service}_remover" -v password="$POSTGRES_PASSWORD" <<'SQL'
CREATE ROLE :"owner" LOGIN PASSWORD :'password';
CREATE ROLE :"reader" LOGIN PASSWORD :'password';
CREATE ROLE :"ingest" LOGIN PASSWORD :'password';
CREATE ROLE :"remover" LOGIN PASSWORD :'password';
CREATE DATABASE :"database" OWNER :"owner";
ALTER ROLE :"reader" SET statement_timeout = '60s';
ALTER ROLE :"ingest" SET statement_timeout = '60s';
ALTER ROLE :"remover" SET statement_timeout = '60s';
SQL
done
psql -v ON_ERROR_STOP=1 --no-psqlrc --username "${POSTGRES_USER:-postgres}" --dbname postgres -v password="$POSTGRES_PASSWORD" <<'SQL'
CREATE ROLE auth_admin LOGIN PASSWORD :'password';
ALTER ROLE auth_admin SET statement_timeout = '60s';
SQL
