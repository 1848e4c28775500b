-- What is wrong with the database for the role that runs this, or NULL. $1 is the variable of the role's URL.
WITH forbidden (variable, on_table, on_column) AS (
	-- The rights that a role must not have. Owners are not listed, because they may do everything. The role of
	-- AUTH_DATABASE_URL may update one column.
	VALUES ('DATABASE_URL', 'DELETE, TRUNCATE', 'INSERT, UPDATE'),
		('READ_DATABASE_URL', 'DELETE, TRUNCATE', 'INSERT, UPDATE'),
		('INGEST_DATABASE_URL', 'DELETE, TRUNCATE', NULL),
		('REMOVE_DATABASE_URL', 'TRUNCATE', NULL),
		('AUTH_DATABASE_URL', 'UPDATE, DELETE, TRUNCATE', 'INSERT'),
		('AUTH_ADMIN_DATABASE_URL', 'DELETE, TRUNCATE', NULL)
), role AS (
	SELECT on_table IS NULL AS owns, concat_ws(', ', on_table, on_column) AS rights,
		rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls AS powerful,
		coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS creates,
		-- Before the first migration, there are no tables. The role of ingest may remove rows of projects and lost_numbers.
		(SELECT min(relname::text) FROM pg_class AS c
			WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relname NOT IN ('projects', 'lost_numbers')
				AND (has_table_privilege(c.oid, on_table) OR has_any_column_privilege(c.oid, on_column))) AS changes
	FROM pg_roles LEFT JOIN forbidden ON variable = $1
	WHERE rolname = current_user
)
SELECT CASE
	WHEN current_setting('server_version_num')::int < 150000
		THEN format('the server is Postgres %s: use Postgres 15 or later', current_setting('server_version'))
	WHEN current_setting('server_encoding') <> 'UTF8'
		THEN format('the database has the encoding %s: create the database anew with ENCODING ''UTF8''', current_setting('server_encoding'))
	WHEN owns AND NOT creates
		THEN 'the role cannot create tables: make the role the owner of the database, as lectern databases does'
	WHEN owns THEN NULL
	WHEN powerful
		THEN 'the role has SUPERUSER, CREATEROLE, CREATEDB, REPLICATION or BYPASSRLS: use a role as lectern databases makes'
	WHEN changes IS NOT NULL
		THEN format('the role has one of %s on the table %s: use the role that the URL is for, or run migrate', rights, changes)
	WHEN creates
		THEN 'the role may create tables: run REVOKE CREATE ON SCHEMA public FROM PUBLIC'
END
FROM role
