-- The keys of entry_data with their values, or the values of one key. There is a row for each key, the most frequent key
-- first. Each row also has the figures of all entries: without a key, there is one row, whose key is NULL.
-- Parameters: $1 to $7 as in counts.sql, $8 the key or NULL for all keys, $9 how many values a key lists (0: no key has
-- values), $10 the characters of white space, $11 the time after which the period before begins or NULL, $12 bounds of
-- intervals or NULL. The first 100 keys have values.
--
-- If Postgres cannot parse the data of an entry, this statement fails. The statement that Store.Answers asks then is
-- slower, and counts that entry as unreadable.
--
-- Postgres groups the canonical text of each value in parallel, and then the few groups as jsonb, in which 1 equals 1.0.
-- The texts of a key whose values are nearly all different stay ungrouped: a blank text and one other text stand for them.
--
-- An entry answers with the different elements of an array, or else with one value. Null and white space are no
-- answers. For null, #>> '{}' is NULL.
--
-- Two bins together are a step of 1, 2 or 5 times a power of ten. The step is the least of which ten hold all numbers.
WITH newest AS (
    SELECT entry_data, row_number() OVER (ORDER BY created_at DESC, entry_id DESC) AS place
    FROM entries
    WHERE project_id = $1 AND $8::text IS NULL AND $9::bigint > 0
      AND ($2::text IS NULL OR embeddable_id = $2)
      AND ($3::timestamptz IS NULL OR created_at > $3) AND ($4::timestamptz IS NULL OR created_at < $4)
      AND ($5::timestamptz IS NULL OR updated_at > $5) AND ($6::timestamptz IS NULL OR updated_at < $6) /* further filters */
      AND ($7::bigint IS NULL OR (
          SELECT true FROM progress p WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 LIMIT 1))
    ORDER BY created_at DESC, entry_id DESC
    LIMIT 10000
), recent AS MATERIALIZED (
    SELECT e.key COLLATE "C" AS key, e.value, count(1) AS entries, min(place) AS place
    FROM newest, jsonb_each(CASE WHEN starts_with(entry_data, '{') THEN entry_data::jsonb ELSE parse_entry(entry_data) END) e
    GROUP BY 1, 2
), many AS MATERIALIZED (
    SELECT key FROM recent GROUP BY key HAVING sum(entries) >= 1000 AND count(1) > 0.9 * sum(entries)
), parsed AS NOT MATERIALIZED (
    SELECT CASE WHEN starts_with(entry_data, '{') THEN entry_data::jsonb ELSE parse_entry(entry_data) END AS data,
           $11::timestamptz IS NULL OR created_at > $3 AS current,
           CASE WHEN $12::timestamptz[] IS NOT NULL AND created_at >= '2000-01-01 00:00Z' AND created_at < '2101-01-01 00:00Z' THEN width_bucket(created_at, $12::timestamptz[]) END AS number
    FROM entries
    WHERE project_id = $1
      AND ($2::text IS NULL OR embeddable_id = $2)
      AND ($3::timestamptz IS NULL OR created_at > coalesce($11::timestamptz, $3)) AND ($4::timestamptz IS NULL OR created_at < $4)
      AND ($5::timestamptz IS NULL OR updated_at > $5) AND ($6::timestamptz IS NULL OR updated_at < $6) /* further filters */
      AND ($7::bigint IS NULL OR (
          SELECT true FROM progress p WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 LIMIT 1))
), whole AS MATERIALIZED (
    SELECT coalesce(sum(entries), 0) AS entries, coalesce(sum(previous), 0) AS previous, coalesce(sum(unreadable), 0) AS unreadable,
           json_object_agg(number, entries) FILTER (WHERE number IS NOT NULL AND entries > 0) AS numbers
    FROM (
        SELECT number, count(1) FILTER (WHERE current) AS entries, count(1) FILTER (WHERE NOT current) AS previous, 0 AS unreadable
        FROM parsed
        GROUP BY number
    ) n
), spelt AS MATERIALIZED (
    SELECT e.key COLLATE "C" AS key, CASE
               WHEN $9::bigint = 0 THEN CASE jsonb_typeof(e.value) WHEN 'string' THEN '""' WHEN 'number' THEN '0' WHEN 'array' THEN '[]' WHEN 'object' THEN '{}' ELSE e.value END
               WHEN e.key <> ALL (coalesce((SELECT array_agg(key) FROM many), '{}')) OR jsonb_typeof(e.value) <> 'string' THEN e.value
               WHEN ascii(e.value #>> '{}') BETWEEN 33 AND 126 OR btrim(e.value #>> '{}', $10::text) <> '' THEN '"text"'
               ELSE '""'
           END::text COLLATE "C" AS value,
           number, count(1) FILTER (WHERE current) AS entries, count(1) FILTER (WHERE NOT current) AS previous
    FROM parsed, jsonb_each(data) e
    WHERE $8::text IS NULL OR e.key = $8
    GROUP BY 1, 2, 3
), field AS MATERIALIZED (
    SELECT key, value::jsonb AS value, number, entries, previous
    FROM spelt
    WHERE starts_with(value, '"') AND octet_length(key) <= 256
    UNION ALL
    SELECT key, value::jsonb, number, sum(entries)::bigint, sum(previous)::bigint
    FROM spelt
    WHERE NOT starts_with(value, '"') AND octet_length(key) <= 256
    GROUP BY 1, 2, 3
), counted AS (
    SELECT key, jsonb_typeof(value) AS type, sum(entries) AS entries
    FROM field
    WHERE entries > 0
    GROUP BY 1, 2
), key AS MATERIALIZED (
    SELECT key, sum(entries) AS entries, json_object_agg(type, entries) AS types, row_number() OVER (ORDER BY sum(entries) DESC, key) AS place
    FROM counted
    GROUP BY key
    ORDER BY place
    LIMIT 1000
), answer AS MATERIALIZED (
    SELECT key, value, number, entries, previous, jsonb_typeof(value) = 'array' AS multiple, CASE
        WHEN jsonb_typeof(value) = 'array' THEN (SELECT array_agg(DISTINCT v) FROM jsonb_array_elements(value) v WHERE btrim(v #>> '{}', $10) <> '')
        WHEN btrim(value #>> '{}', $10) <> '' THEN ARRAY[value]
    END AS answers
    FROM field
    WHERE $9 > 0 AND key IN (SELECT key FROM key WHERE place <= 100)
), frequent AS MATERIALIZED (
    SELECT key, value, entries, previous, alone, place
    FROM (
        SELECT key, value, entries, previous, alone, row_number() OVER (PARTITION BY key ORDER BY entries DESC, value) AS place
        FROM (
            SELECT key, v AS value, sum(entries) AS entries, sum(previous) AS previous, coalesce(sum(entries) FILTER (WHERE NOT multiple), 0) AS alone
            FROM answer, unnest(answers) v
            WHERE octet_length(v::text) <= 1000 AND key NOT IN (SELECT key FROM many)
            GROUP BY 1, 2
            ORDER BY key, entries DESC, value
            LIMIT CASE WHEN $8 IS NOT NULL THEN $9 END -- of one key, Postgres need not sort the rest
        ) v
    ) v
    WHERE place <= $9 AND entries > 0
), list AS MATERIALIZED (
    SELECT key, array_agg(value) AS listed, sum(alone) AS alone
    FROM frequent
    GROUP BY key
), total AS (
    SELECT key, sum(entries) AS answered, sum(entries) FILTER (WHERE multiple) AS multiple
    FROM answer
    WHERE answers IS NOT NULL
    GROUP BY key
), covered AS (
    SELECT key, sum(entries) AS entries
    FROM answer JOIN list USING (key)
    WHERE multiple AND answers <@ listed
    GROUP BY key
), spread AS MATERIALIZED (
    SELECT key, value, json_object_agg(number, entries) AS numbers
    FROM (
        SELECT key, v AS value, number, sum(entries) AS entries
        FROM answer, unnest(answers) v
        WHERE $12 IS NOT NULL AND number IS NOT NULL AND entries > 0
          AND (v IN (SELECT value FROM frequent)) IS TRUE -- so that Postgres makes a hash table and no join
        GROUP BY 1, 2, 3
    ) v
    GROUP BY key, value
), latest AS MATERIALIZED (
    SELECT key, value, place
    FROM (
        SELECT key, v AS value, row_number() OVER (PARTITION BY key ORDER BY min(place), v) AS place
        FROM recent JOIN many USING (key) CROSS JOIN LATERAL (
            SELECT value WHERE jsonb_typeof(value) <> 'array'
            UNION ALL
            SELECT jsonb_array_elements(value) WHERE jsonb_typeof(value) = 'array'
        ) e (v)
        WHERE btrim(v #>> '{}', $10) <> '' AND octet_length(v::text) <= 1000
        GROUP BY key, v
    ) v
    WHERE place <= $9
), number AS MATERIALIZED (
    SELECT key, n::float8 AS n, entries AS weight, sum(entries) OVER (PARTITION BY key) AS total,
           sum(entries) OVER (PARTITION BY key ORDER BY n ROWS UNBOUNDED PRECEDING) AS upto
    FROM (SELECT key, CASE WHEN jsonb_typeof(value) = 'number' THEN value::numeric END AS n, entries FROM answer WHERE entries > 0) v
    WHERE n = 0 OR abs(n) BETWEEN 1e-300 AND 1e300
), summary AS (
    SELECT key, total AS entries, min(n) AS low, max(n) AS high
    FROM number
    GROUP BY key, total
), quartile AS (
    SELECT key, array_agg(low + (high - low) * (at - floor(at))::float8 ORDER BY part) AS n
    FROM (
        SELECT key, part, at, min(n) FILTER (WHERE upto > floor(at)) AS low, min(n) FILTER (WHERE upto > ceil(at)) AS high
        FROM number CROSS JOIN (VALUES (0.25), (0.5), (0.75)) p (part) CROSS JOIN LATERAL (SELECT part * (total - 1) AS at) a
        GROUP BY key, part, at
    ) q
    GROUP BY key
), bounded AS (
    SELECT key, CASE WHEN high > low THEN (
        SELECT ARRAY(SELECT (floor(least / step) * step + i * step / 2)::float8 FROM generate_series(0, 20) i)
        FROM (SELECT low::text::numeric AS least, high::text::numeric AS most) d
        CROSS JOIN LATERAL (SELECT (times || 'e' || floor(log((most - least) / 10)))::numeric AS step FROM unnest(ARRAY[1, 2, 5, 10, 20]) times) r
        WHERE floor(most / step) - floor(least / step) < 10
        ORDER BY step
        LIMIT 1
    ) ELSE ARRAY[low, high] END AS bounds
    FROM summary
), bin AS (
    SELECT key, least(greatest(width_bucket(n, bounds), 1), cardinality(bounds) - 1) AS bin, sum(weight) AS entries
    FROM number JOIN bounded USING (key)
    GROUP BY 1, 2
)
SELECT k.key, k.entries, k.types, k.key IN (SELECT key FROM many), w.entries, w.unreadable, w.previous, w.numbers,
    w.entries - w.unreadable - coalesce(t.answered, 0), coalesce(t.multiple, 0), coalesce(t.answered, 0) - coalesce(l.alone, 0) - coalesce(c.entries, 0),
    coalesce((
        SELECT json_agg(json_build_object('value', f.value, 'entries', f.entries, 'previous', CASE WHEN $11 IS NOT NULL THEN f.previous END, 'numbers', n.numbers) ORDER BY place)
        FROM frequent f LEFT JOIN spread n USING (key, value)
        WHERE key = k.key
    ), (
        SELECT json_agg(json_build_object('value', value) ORDER BY place) FROM latest WHERE key = k.key
    ), '[]'), (
        SELECT json_build_object(
            'entries', s.entries, 'minimum', s.low, 'lower_quartile', q.n[1], 'median', q.n[2], 'upper_quartile', q.n[3],
            'maximum', s.high, 'bins', (
                SELECT json_agg(json_build_object('from', bounds[i], 'to', bounds[i + 1], 'entries', coalesce(b.entries, 0)) ORDER BY i)
                FROM bounded r CROSS JOIN generate_series(1, cardinality(bounds) - 1) i LEFT JOIN bin b ON b.key = r.key AND b.bin = i
                WHERE r.key = s.key))
        FROM summary s JOIN quartile q USING (key) WHERE s.key = k.key
    )
FROM whole w LEFT JOIN key k ON true LEFT JOIN total t USING (key) LEFT JOIN list l USING (key) LEFT JOIN covered c USING (key)
ORDER BY k.place
