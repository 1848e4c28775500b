package distribute

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// bringBack turns a distributed table into a local table of the coordinator. The table keeps its rows, owner, grants,
// indexes, and all constraints except foreign keys. An identity column continues after the largest number in the
// column. The function undistribute_table of Citus is not used, because the function refuses tables with identity
// columns.
func bringBack(ctx context.Context, tx pgx.Tx, t table) error {
	var schema, name, owner string
	var columns, identities, indexes, grants []string
	err := tx.QueryRow(ctx, `
		SELECT n.nspname, c.relname, pg_get_userbyid(c.relowner),
		       ARRAY(SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum),
		       ARRAY(SELECT attname FROM pg_attribute WHERE attrelid = c.oid AND attidentity <> ''),
		       ARRAY(SELECT CASE WHEN k.oid IS NULL THEN pg_get_indexdef(i.indexrelid)
		                         ELSE format('ALTER TABLE %s ADD CONSTRAINT %I %s', c.oid::regclass, k.conname, pg_get_constraintdef(k.oid)) END
		             FROM pg_index i LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.conrelid = c.oid
		             WHERE i.indrelid = c.oid ORDER BY i.indexrelid),
		       ARRAY(SELECT format('GRANT %s ON %s TO %s', a.privilege_type, c.oid::regclass, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
		             FROM aclexplode(c.relacl) a WHERE a.grantee <> c.relowner
		             UNION ALL
		             SELECT format('GRANT %s (%I) ON %s TO %s', a.privilege_type, attname, c.oid::regclass, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
		             FROM pg_attribute, aclexplode(attacl) a WHERE attrelid = c.oid AND attnum > 0 AND a.grantee <> c.relowner)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.oid = $1::regclass`, t.name).Scan(&schema, &name, &owner, &columns, &identities, &indexes, &grants)
	if err != nil {
		return err
	}
	beside := pgx.Identifier{schema, name + "_back"}.Sanitize()
	list := strings.Join(columns, ", ")
	statements := []string{
		"CREATE TABLE " + beside + " (LIKE " + t.name + " INCLUDING ALL EXCLUDING INDEXES)",
		"INSERT INTO " + beside + " (" + list + ") OVERRIDING SYSTEM VALUE SELECT " + list + " FROM " + t.name,
		"DROP TABLE " + t.name,
		"ALTER TABLE " + beside + " RENAME TO " + quote(name),
		"ALTER TABLE " + t.name + " OWNER TO " + quote(owner),
	}
	statements = append(statements, indexes...)
	statements = append(statements, grants...)
	for _, column := range identities {
		statements = append(statements, fmt.Sprintf(
			`SELECT setval(pg_get_serial_sequence('%s', '%s'), coalesce(max(%s), 0) + 1, false) FROM %s`,
			strings.ReplaceAll(t.name, "'", "''"), strings.ReplaceAll(column, "'", "''"), quote(column), t.name))
	}
	statements = append(statements, "ANALYZE "+t.name)
	for _, sql := range statements {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}
