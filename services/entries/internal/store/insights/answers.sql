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
-- The numbers of a key are two arrays, from the greatest number to the least: each number times -1 (negative), and how many
-- entries have that number or a greater one (above). Both arrays ascend, as width_bucket needs. So a binary search finds the
-- quartiles and the entries of a bin.
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
               WHEN $9::bigint = 0 THEN CASE jsonb_typeof(e.value) WHEN 'string' THEN '""' WHEN 'number' THEN '0' WHEN 'array' THEN '[]' WHEN 'object' THEN '{}' ELSE e.value::text END
               WHEN e.key <> ALL (coalesce((SELECT array_agg(key) FROM many), '{}')) OR jsonb_typeof(e.value) <> 'string' THEN e.value::text
               WHEN ascii(e.value #>> '{}') BETWEEN 33 AND 126 OR btrim(e.value #>> '{}', $10::text) <> '' THEN '"text"'
               ELSE '""'
           END COLLATE "C" AS value,
           number, count(1) FILTER (WHERE current) AS entries, count(1) FILTER (WHERE NOT current) AS previous
    FROM parsed, jsonb_each(data) e
    WHERE $8::text IS NULL OR e.key = $8
    GROUP BY 1, 2, 3
), field AS MATERIALIZED (
    SELECT key, value::jsonb AS value, number, entries::int AS entries, previous::int AS previous -- as int, whose sums are no numeric
    FROM spelt
    WHERE starts_with(value, '"') AND octet_length(key) <= 256
    UNION ALL
    SELECT key, value::jsonb, number, sum(entries)::int, sum(previous)::int
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
    SELECT key, value, number, entries, previous, jsonb_typeof(value) = 'array' AS multiple, CASE jsonb_typeof(value)
        WHEN 'array' THEN (SELECT array_agg(DISTINCT v) FROM jsonb_array_elements(value) v WHERE btrim(v #>> '{}', $10) <> '')
        WHEN 'string' THEN CASE WHEN btrim(value #>> '{}', $10) <> '' THEN ARRAY[value] END
        WHEN 'null' THEN NULL
        ELSE ARRAY[value]
    END AS answers, CASE jsonb_typeof(value) WHEN 'number' THEN value::numeric END AS n
    FROM field
    WHERE $9 > 0 AND key IN (SELECT key FROM key WHERE place <= 100)
), given AS MATERIALIZED (
    SELECT key, v AS value, sum(entries) AS entries, sum(previous) AS previous, coalesce(sum(entries) FILTER (WHERE NOT multiple), 0) AS alone
    FROM answer, unnest(answers) v
    WHERE octet_length(v::text) <= 1000 AND key NOT IN (SELECT key FROM many)
    GROUP BY 1, 2
), least AS ( -- without the many values that are too rare, Postgres has little to sort
    SELECT key, min(entries) AS entries
    FROM (SELECT key, entries, sum(count(1)) OVER (PARTITION BY key ORDER BY entries DESC) - count(1) AS above FROM given GROUP BY 1, 2) g
    WHERE above < $9 AND entries > 0
    GROUP BY key
), frequent AS MATERIALIZED (
    SELECT key, value, entries, previous, alone, place
    FROM (
        SELECT key, value, entries, previous, alone, row_number() OVER (PARTITION BY key ORDER BY entries DESC, value) AS place
        FROM (
            SELECT key, value, g.entries, previous, alone
            FROM given g JOIN least l USING (key)
            WHERE g.entries >= l.entries
            ORDER BY key, entries DESC, value
            LIMIT CASE WHEN $8 IS NOT NULL THEN $9 END -- of one key, Postgres need not sort the rest
        ) v
    ) v
    WHERE place <= $9
), alone AS (
    SELECT key, sum(alone) AS entries
    FROM frequent
    GROUP BY key
), total AS (
    SELECT key, sum(entries) AS answered, sum(entries) FILTER (WHERE multiple) AS multiple
    FROM answer
    WHERE answers IS NOT NULL
    GROUP BY key
), covered AS (
    SELECT key, sum(entries) AS entries
    FROM answer
    WHERE multiple AND (SELECT bool_and(((key, v) IN (SELECT key, value FROM frequent)) IS TRUE) FROM unnest(answers) v) -- a hash table, as in spread
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
    SELECT key, max(above) AS entries, min(n) AS low, max(n) AS high, array_agg(-n ORDER BY above) AS negative, array_agg(above ORDER BY above) AS above
    FROM (
        SELECT key, n::float8 AS n, sum(entries) OVER (PARTITION BY key ORDER BY n::float8 DESC ROWS UNBOUNDED PRECEDING) AS above
        FROM answer
        WHERE entries > 0 AND (n = 0 OR abs(n) BETWEEN 1e-300 AND 1e300)
    ) v
    GROUP BY key
), bounded AS (
    SELECT key, ARRAY(
        SELECT a + (b - a) * (at % 4) / 4
        FROM generate_series(1, 3) part CROSS JOIN LATERAL (SELECT (entries - 1) * part AS at) p
        CROSS JOIN LATERAL (SELECT -negative[1 + width_bucket(entries - 1 - at / 4, above)] AS a, -negative[1 + width_bucket(entries - 1 - (at + 3) / 4, above)] AS b) n
    ) AS quartiles, CASE WHEN high > low THEN (
        SELECT ARRAY(SELECT (floor(least / step) * step + i * step / 2)::float8 FROM generate_series(0, 20) i)
        FROM (SELECT low::text::numeric AS least, high::text::numeric AS most) d
        CROSS JOIN LATERAL (SELECT (times || 'e' || floor(log((most - least) / 10)))::numeric AS step FROM unnest(ARRAY[1, 2, 5, 10, 20]) times) r
        WHERE floor(most / step) - floor(least / step) < 10
        ORDER BY step
        LIMIT 1
    ) ELSE ARRAY[low, high] END AS bounds
    FROM number
)
SELECT k.key, k.entries, k.types, k.key IN (SELECT key FROM many), w.entries, w.unreadable, w.previous, w.numbers,
    w.entries - w.unreadable - coalesce(t.answered, 0), coalesce(t.multiple, 0), coalesce(t.answered, 0) - coalesce(a.entries, 0) - coalesce(c.entries, 0),
    coalesce((
        SELECT json_agg(json_build_object('value', f.value, 'entries', f.entries, 'previous', CASE WHEN $11 IS NOT NULL THEN f.previous END, 'numbers', n.numbers) ORDER BY place)
        FROM frequent f LEFT JOIN spread n USING (key, value)
        WHERE key = k.key
    ), (
        SELECT json_agg(json_build_object('value', value) ORDER BY place) FROM latest WHERE key = k.key
    ), '[]'), (
        SELECT json_build_object('entries', entries, 'minimum', low, 'lower_quartile', quartiles[1], 'median', quartiles[2], 'upper_quartile', quartiles[3], 'maximum', high, 'bins', (
            SELECT json_agg(json_build_object('from', bounds[i], 'to', bounds[i + 1],
                'entries', CASE WHEN i = 1 THEN entries ELSE coalesce(above[width_bucket(-bounds[i], negative)], 0) END
                    - CASE WHEN i = cardinality(bounds) - 1 THEN 0 ELSE coalesce(above[width_bucket(-bounds[i + 1], negative)], 0) END) ORDER BY i)
            FROM generate_series(1, cardinality(bounds) - 1) i))
        FROM number JOIN bounded USING (key)
        WHERE key = k.key
    )
FROM whole w LEFT JOIN key k ON true LEFT JOIN total t USING (key) LEFT JOIN alone a USING (key) LEFT JOIN covered c USING (key)
ORDER BY k.place
