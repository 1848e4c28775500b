-- The figures of the console's funnel. $1 project, $2 embeddable, $3 version or null, $4 first moment or null, $5 first moment after the period or null.
-- One row a page in the order of the pages; every row also has entries, started and views of the whole funnel.
WITH entry AS (
    SELECT entry_id FROM entries
    WHERE project_id = $1 AND embeddable_id = $2
      AND ($4::timestamptz IS NULL OR updated_at >= $4) AND ($5::timestamptz IS NULL OR updated_at < $5)
), view AS (
    SELECT v.entry_id, v.page_id, v.page_key, v.page_index, v."timestamp",
           lead(v."timestamp") OVER (PARTITION BY v.entry_id ORDER BY v."timestamp", v.arrival) - v."timestamp" AS duration
    FROM events v JOIN entry USING (entry_id)
    WHERE v.project_id = $1 AND v.event_type = 'flowpage.viewed'
      AND ($3::bigint IS NULL OR (v.embeddable_id = $2 AND v.embeddable_version_number = $3))
), page AS (
    SELECT page_id, page_key, page_index, row_number() OVER (ORDER BY page_index, page_key, page_id) AS place
    FROM (SELECT DISTINCT ON (page_id) page_id, page_key, page_index FROM view
          ORDER BY page_id, "timestamp" DESC, page_index DESC, page_key DESC) newest
), reached AS (
    SELECT DISTINCT entry_id, page_id, place FROM view JOIN page USING (page_id)
), latest AS (
    SELECT entry_id, max(place) AS place FROM reached GROUP BY entry_id
)
SELECT (SELECT count(*) FROM entry) AS entries,
       (SELECT count(*) FROM latest) AS started,
       (SELECT count(*) FROM view) AS views,
       p.page_id, p.page_key, p.page_index,
       (SELECT count(*) FROM reached r WHERE r.place = p.place) AS reached,
       (SELECT count(*) FROM latest l WHERE l.place = p.place) AS dropped,
       (SELECT count(duration) FROM view v WHERE v.page_id = p.page_id) AS timed,
       (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM duration)::float8 * 1000)
        FROM view v WHERE v.page_id = p.page_id AND duration IS NOT NULL) AS median_ms
FROM page p ORDER BY p.place;
