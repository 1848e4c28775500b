--
-- PostgreSQL database dump
--

\restrict F7O0xyMphM8SUq94rONoiOi4ryFtXpRPY9yefsBy1oBng2HbPVxxTBvwR1THOKu

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: Copy of shop; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA "Copy of shop";


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: embeddable_versions; Type: TABLE; Schema: Copy of shop; Owner: -
--

CREATE TABLE "Copy of shop".embeddable_versions (
    embeddable_id text NOT NULL COLLATE pg_catalog."C",
    version_number bigint NOT NULL,
    saved_at timestamp with time zone NOT NULL,
    definition text NOT NULL
);


--
-- Name: TABLE embeddable_versions; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON TABLE "Copy of shop".embeddable_versions IS 'Saved versions of embeddables';


--
-- Name: COLUMN embeddable_versions.embeddable_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".embeddable_versions.embeddable_id IS 'Embeddable';


--
-- Name: COLUMN embeddable_versions.version_number; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".embeddable_versions.version_number IS 'Number of the version, from 1';


--
-- Name: COLUMN embeddable_versions.saved_at; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".embeddable_versions.saved_at IS 'Time at which it was saved';


--
-- Name: COLUMN embeddable_versions.definition; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".embeddable_versions.definition IS 'Saved content, as JSON text';


--
-- Name: embeddables; Type: TABLE; Schema: Copy of shop; Owner: -
--

CREATE TABLE "Copy of shop".embeddables (
    embeddable_id text NOT NULL COLLATE pg_catalog."C",
    title text NOT NULL,
    group_id text NOT NULL COLLATE pg_catalog."C",
    project_id text NOT NULL COLLATE pg_catalog."C",
    definition text NOT NULL
);


--
-- Name: TABLE embeddables; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON TABLE "Copy of shop".embeddables IS 'Embeddables of the project, as they are now';


--
-- Name: COLUMN embeddables.embeddable_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".embeddables.embeddable_id IS 'Identifier of the embeddable';


--
-- Name: COLUMN embeddables.title; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".embeddables.title IS 'Title';


--
-- Name: COLUMN embeddables.group_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".embeddables.group_id IS 'Group that it belongs to';


--
-- Name: COLUMN embeddables.project_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".embeddables.project_id IS 'Project';


--
-- Name: COLUMN embeddables.definition; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".embeddables.definition IS 'Content in production, as JSON text';


--
-- Name: entries; Type: TABLE; Schema: Copy of shop; Owner: -
--

CREATE TABLE "Copy of shop".entries (
    entry_id text NOT NULL COLLATE pg_catalog."C",
    group_id text NOT NULL COLLATE pg_catalog."C",
    project_id text NOT NULL COLLATE pg_catalog."C",
    embeddable_id text NOT NULL COLLATE pg_catalog."C",
    contact_id text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    entry_data jsonb,
    entry_data_text text,
    entry_columns jsonb,
    seq bigint NOT NULL,
    removed_at timestamp with time zone,
    removal_reason text
);


--
-- Name: TABLE entries; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON TABLE "Copy of shop".entries IS 'Answers of a person to an embeddable, one row for each entry';


--
-- Name: COLUMN entries.entry_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".entries.entry_id IS 'Entry; its events may come before it';


--
-- Name: COLUMN entries.group_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".entries.group_id IS 'Group that the embeddable belongs to';


--
-- Name: COLUMN entries.project_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".entries.project_id IS 'Project';


--
-- Name: COLUMN entries.embeddable_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".entries.embeddable_id IS 'Embeddable that was answered';


--
-- Name: COLUMN entries.contact_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".entries.contact_id IS 'Person who answered';


--
-- Name: COLUMN entries.created_at; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".entries.created_at IS 'Time of the first answer';


--
-- Name: COLUMN entries.updated_at; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".entries.updated_at IS 'Time of the last answer';


--
-- Name: COLUMN entries.entry_data; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".entries.entry_data IS 'Answers, by key; null if jsonb cannot hold them';


--
-- Name: COLUMN entries.entry_data_text; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".entries.entry_data_text IS 'Answers that jsonb cannot hold, byte for byte; otherwise null';


--
-- Name: COLUMN entries.entry_columns; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".entries.entry_columns IS 'Values that the view of the embeddable shows, if they are not those of entry_data; otherwise null';


--
-- Name: COLUMN entries.seq; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".entries.seq IS 'Number of the last change';


--
-- Name: COLUMN entries.removed_at; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".entries.removed_at IS 'Time of the removal; null if the row is current';


--
-- Name: COLUMN entries.removal_reason; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".entries.removal_reason IS 'Reason of the removal';


--
-- Name: entries_of_emb_1; Type: VIEW; Schema: Copy of shop; Owner: -
--

CREATE VIEW "Copy of shop".entries_of_emb_1 AS
 SELECT t.entry_id,
    t.group_id,
    t.project_id,
    t.embeddable_id,
    t.contact_id,
    t.created_at,
    t.updated_at,
    t.entry_data,
    t.entry_data_text,
    t.seq,
        CASE
            WHEN (t.embeddable_id = 'emb_1'::text) THEN ((COALESCE(t.entry_columns, t.entry_data) ->> 'n'::text))::double precision
            ELSE NULL::double precision
        END AS n,
    (COALESCE(t.entry_columns, t.entry_data) ->> 'text'::text) AS text,
        CASE
            WHEN (t.embeddable_id = 'emb_1'::text) THEN ((COALESCE(t.entry_columns, t.entry_data) ->> 'price'::text))::double precision
            ELSE NULL::double precision
        END AS price,
    (COALESCE(t.entry_columns, t.entry_data) ->> 'a'::text) AS a,
    (COALESCE(t.entry_columns, t.entry_data) ->> 'b'::text) AS b,
        CASE
            WHEN (t.embeddable_id = 'emb_1'::text) THEN ((COALESCE(t.entry_columns, t.entry_data) ->> 'back'::text))::double precision
            ELSE NULL::double precision
        END AS back
   FROM "Copy of shop".entries t
  WHERE ((t.embeddable_id = 'emb_1'::text) AND (t.removed_at IS NULL));


--
-- Name: entries_of_emb_2; Type: VIEW; Schema: Copy of shop; Owner: -
--

CREATE VIEW "Copy of shop".entries_of_emb_2 AS
 SELECT t.entry_id,
    t.group_id,
    t.project_id,
    t.embeddable_id,
    t.contact_id,
    t.created_at,
    t.updated_at,
    t.entry_data,
    t.entry_data_text,
    t.seq,
        CASE
            WHEN (t.embeddable_id = 'emb_2'::text) THEN ((COALESCE(t.entry_columns, t.entry_data) ->> 'b'::text))::double precision
            ELSE NULL::double precision
        END AS b
   FROM "Copy of shop".entries t
  WHERE ((t.embeddable_id = 'emb_2'::text) AND (t.removed_at IS NULL));


--
-- Name: events; Type: TABLE; Schema: Copy of shop; Owner: -
--

CREATE TABLE "Copy of shop".events (
    entry_id text NOT NULL COLLATE pg_catalog."C",
    contact_id text NOT NULL COLLATE pg_catalog."C",
    project_id text NOT NULL COLLATE pg_catalog."C",
    group_id text NOT NULL COLLATE pg_catalog."C",
    embeddable_id text NOT NULL COLLATE pg_catalog."C",
    embeddable_version_number bigint,
    "timestamp" timestamp with time zone NOT NULL,
    page_id text COLLATE pg_catalog."C",
    page_key text,
    page_index bigint,
    max_page_id text COLLATE pg_catalog."C",
    max_page_key text,
    max_page_index bigint,
    total_pages bigint,
    event_type text NOT NULL,
    view_type text,
    custom_event_name text,
    custom_event_props text,
    event_id text COLLATE pg_catalog."C",
    url text,
    event_key text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    removed_at timestamp with time zone,
    removal_reason text
);


--
-- Name: TABLE events; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON TABLE "Copy of shop".events IS 'Page views and other events of entries, one row for each event';


--
-- Name: COLUMN events.entry_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.entry_id IS 'Entry; its events may come before it';


--
-- Name: COLUMN events.contact_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.contact_id IS 'Person who answered';


--
-- Name: COLUMN events.project_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.project_id IS 'Project';


--
-- Name: COLUMN events.group_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.group_id IS 'Group that the embeddable belongs to';


--
-- Name: COLUMN events.embeddable_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.embeddable_id IS 'Embeddable that was answered';


--
-- Name: COLUMN events.embeddable_version_number; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.embeddable_version_number IS 'Version of the embeddable that was shown';


--
-- Name: COLUMN events."timestamp"; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events."timestamp" IS 'Time of the event';


--
-- Name: COLUMN events.page_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.page_id IS 'Page';


--
-- Name: COLUMN events.page_key; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.page_key IS 'Name of the page';


--
-- Name: COLUMN events.page_index; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.page_index IS 'Position of the page';


--
-- Name: COLUMN events.max_page_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.max_page_id IS 'Furthest page so far';


--
-- Name: COLUMN events.max_page_key; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.max_page_key IS 'Name of the furthest page';


--
-- Name: COLUMN events.max_page_index; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.max_page_index IS 'Position of the furthest page';


--
-- Name: COLUMN events.total_pages; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.total_pages IS 'Number of pages';


--
-- Name: COLUMN events.event_type; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.event_type IS 'Type, such as flowpage.viewed';


--
-- Name: COLUMN events.view_type; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.view_type IS 'Type of the view';


--
-- Name: COLUMN events.custom_event_name; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.custom_event_name IS 'Name of a custom event';


--
-- Name: COLUMN events.custom_event_props; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.custom_event_props IS 'Properties of a custom event, as JSON text';


--
-- Name: COLUMN events.event_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.event_id IS 'Identifier at the source, or null';


--
-- Name: COLUMN events.url; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.url IS 'Address of the page that embeds';


--
-- Name: COLUMN events.event_key; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.event_key IS 'Stable key of the event';


--
-- Name: COLUMN events.seq; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.seq IS 'Number of the last change';


--
-- Name: COLUMN events.removed_at; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.removed_at IS 'Time of the removal; null if the row is current';


--
-- Name: COLUMN events.removal_reason; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".events.removal_reason IS 'Reason of the removal';


--
-- Name: experiment_history; Type: TABLE; Schema: Copy of shop; Owner: -
--

CREATE TABLE "Copy of shop".experiment_history (
    experiment_id text NOT NULL COLLATE pg_catalog."C",
    change bigint NOT NULL,
    status text,
    changed_at timestamp with time zone NOT NULL,
    recorded_at timestamp with time zone NOT NULL
);


--
-- Name: TABLE experiment_history; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON TABLE "Copy of shop".experiment_history IS 'Changes of the status of experiments';


--
-- Name: COLUMN experiment_history.experiment_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiment_history.experiment_id IS 'Experiment';


--
-- Name: COLUMN experiment_history.change; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiment_history.change IS 'Number of the change in its experiment, from 1';


--
-- Name: COLUMN experiment_history.status; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiment_history.status IS 'New status';


--
-- Name: COLUMN experiment_history.changed_at; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiment_history.changed_at IS 'Time of the change at the source';


--
-- Name: COLUMN experiment_history.recorded_at; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiment_history.recorded_at IS 'Time at which the server recorded the change';


--
-- Name: experiments; Type: TABLE; Schema: Copy of shop; Owner: -
--

CREATE TABLE "Copy of shop".experiments (
    experiment_id text NOT NULL COLLATE pg_catalog."C",
    flow_id text NOT NULL COLLATE pg_catalog."C",
    name text,
    hypothesis text,
    impact_metrics text[],
    no_impact_metrics text[],
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    observations text,
    outcome text,
    attachments text,
    variants text,
    flow_ids text[],
    paused_showing_variant text,
    winner_variant text,
    status text
);


--
-- Name: TABLE experiments; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON TABLE "Copy of shop".experiments IS 'Experiments on embeddables, as they are now';


--
-- Name: COLUMN experiments.experiment_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiments.experiment_id IS 'Identifier of the experiment';


--
-- Name: COLUMN experiments.flow_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiments.flow_id IS 'Embeddable that is tested';


--
-- Name: COLUMN experiments.name; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiments.name IS 'Name';


--
-- Name: COLUMN experiments.hypothesis; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiments.hypothesis IS 'Hypothesis';


--
-- Name: COLUMN experiments.impact_metrics; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiments.impact_metrics IS 'Metrics that should change';


--
-- Name: COLUMN experiments.no_impact_metrics; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiments.no_impact_metrics IS 'Metrics that should not change';


--
-- Name: COLUMN experiments.created_at; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiments.created_at IS 'Time at which it was made';


--
-- Name: COLUMN experiments.updated_at; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiments.updated_at IS 'Time of the last change';


--
-- Name: COLUMN experiments.observations; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiments.observations IS 'Observations';


--
-- Name: COLUMN experiments.outcome; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiments.outcome IS 'Outcome';


--
-- Name: COLUMN experiments.attachments; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiments.attachments IS 'JSON text of an array of objects with url and name';


--
-- Name: COLUMN experiments.variants; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiments.variants IS 'JSON text of an object with the variants by key';


--
-- Name: COLUMN experiments.flow_ids; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiments.flow_ids IS 'Embeddables of the variants';


--
-- Name: COLUMN experiments.paused_showing_variant; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiments.paused_showing_variant IS 'Key of the variant that is shown while the experiment is paused';


--
-- Name: COLUMN experiments.winner_variant; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiments.winner_variant IS 'Key of the variant that won';


--
-- Name: COLUMN experiments.status; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".experiments.status IS 'draft, running, paused, winner_picked, completed or discarded';


--
-- Name: lectern_columns; Type: TABLE; Schema: Copy of shop; Owner: -
--

CREATE TABLE "Copy of shop".lectern_columns (
    embeddable_id text NOT NULL COLLATE pg_catalog."C",
    "position" bigint NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL
);


--
-- Name: TABLE lectern_columns; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON TABLE "Copy of shop".lectern_columns IS 'Columns of the views of embeddables; do not change it';


--
-- Name: COLUMN lectern_columns.embeddable_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_columns.embeddable_id IS 'Embeddable of the view';


--
-- Name: COLUMN lectern_columns."position"; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_columns."position" IS 'Position of the column, from 0';


--
-- Name: COLUMN lectern_columns.key; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_columns.key IS 'Key in entry_data';


--
-- Name: COLUMN lectern_columns.name; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_columns.name IS 'Name of the column';


--
-- Name: COLUMN lectern_columns.type; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_columns.type IS 'Type of the column';


--
-- Name: lectern_sync; Type: TABLE; Schema: Copy of shop; Owner: -
--

CREATE TABLE "Copy of shop".lectern_sync (
    only_row boolean DEFAULT true NOT NULL,
    layout bigint NOT NULL,
    project_id text NOT NULL,
    url text NOT NULL,
    cursor text NOT NULL,
    seq bigint NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    current_at timestamp with time zone,
    verified_at timestamp with time zone,
    differences bigint,
    load_to bigint,
    project text NOT NULL,
    columns text NOT NULL,
    soft_delete boolean NOT NULL,
    masked text NOT NULL,
    revision bigint,
    unfilled_from bigint,
    unfilled_cursor text,
    CONSTRAINT lectern_sync_only_row_check CHECK (only_row)
);


--
-- Name: TABLE lectern_sync; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON TABLE "Copy of shop".lectern_sync IS 'Source and position of the copy; do not change it';


--
-- Name: COLUMN lectern_sync.layout; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.layout IS 'Version of the tables';


--
-- Name: COLUMN lectern_sync.project_id; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.project_id IS 'Project of the copy';


--
-- Name: COLUMN lectern_sync.url; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.url IS 'Address of the API';


--
-- Name: COLUMN lectern_sync.cursor; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.cursor IS 'Position in the feed';


--
-- Name: COLUMN lectern_sync.seq; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.seq IS 'Number of the last change that the copy has';


--
-- Name: COLUMN lectern_sync.changed_at; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.changed_at IS 'Time of the last change of the copy';


--
-- Name: COLUMN lectern_sync.current_at; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.current_at IS 'Time at which the copy last had all changes';


--
-- Name: COLUMN lectern_sync.verified_at; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.verified_at IS 'Time of the last comparison with the source';


--
-- Name: COLUMN lectern_sync.differences; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.differences IS 'Differences that it found';


--
-- Name: COLUMN lectern_sync.load_to; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.load_to IS 'Number of the newest change when the first load began; null once it has ended and keys and indexes are made';


--
-- Name: COLUMN lectern_sync.project; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.project IS 'Digest of the embeddables and experiments that the copy has';


--
-- Name: COLUMN lectern_sync.columns; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.columns IS 'Choice of columns';


--
-- Name: COLUMN lectern_sync.soft_delete; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.soft_delete IS 'Whether removed rows stay';


--
-- Name: COLUMN lectern_sync.masked; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.masked IS 'Columns and keys of entry_data that are left out or hashed';


--
-- Name: COLUMN lectern_sync.revision; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.revision IS 'Newest revision of the tables that a version has written';


--
-- Name: COLUMN lectern_sync.unfilled_from; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.unfilled_from IS 'Number of the change after which rows may lack values in columns that a version added; null if none do';


--
-- Name: COLUMN lectern_sync.unfilled_cursor; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON COLUMN "Copy of shop".lectern_sync.unfilled_cursor IS 'Position in the feed of that change';


--
-- Name: page_views; Type: VIEW; Schema: Copy of shop; Owner: -
--

CREATE VIEW "Copy of shop".page_views AS
 SELECT events.event_key,
    events.entry_id,
    events.contact_id,
    events.group_id,
    events.embeddable_id,
    events.embeddable_version_number,
    events."timestamp",
    events.page_id,
    events.page_key,
    events.page_index,
    events.url
   FROM "Copy of shop".events
  WHERE ((events.event_type = 'flowpage.viewed'::text) AND (events.removed_at IS NULL));


--
-- Name: VIEW page_views; Type: COMMENT; Schema: Copy of shop; Owner: -
--

COMMENT ON VIEW "Copy of shop".page_views IS 'Events of the type flowpage.viewed';


--
-- Data for Name: embeddable_versions; Type: TABLE DATA; Schema: Copy of shop; Owner: -
--

COPY "Copy of shop".embeddable_versions (embeddable_id, version_number, saved_at, definition) FROM stdin;
emb_1	1	2022-01-01 00:00:00.00025+00	{"v":1}
emb_1	2	2022-01-01 00:00:00.00025+00	{"v":2}
\.


--
-- Data for Name: embeddables; Type: TABLE DATA; Schema: Copy of shop; Owner: -
--

COPY "Copy of shop".embeddables (embeddable_id, title, group_id, project_id, definition) FROM stdin;
emb_1	Title ü	gr_1	pr_1	{"n":2}
\.


--
-- Data for Name: entries; Type: TABLE DATA; Schema: Copy of shop; Owner: -
--

COPY "Copy of shop".entries (entry_id, group_id, project_id, embeddable_id, contact_id, created_at, updated_at, entry_data, entry_data_text, entry_columns, seq, removed_at, removal_reason) FROM stdin;
en_0	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:00.00025+00	{"n": 0, "text": "ÿ €", "price": 1.50}	\N	\N	10	\N	\N
en_1	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:01.00025+00	{"n": 1, "text": "ÿ €", "price": 1.50}	\N	\N	40	\N	\N
en_2	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:02.00025+00	{"n": 2, "text": "ÿ €", "price": 1.50}	\N	\N	70	\N	\N
en_3	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:03.00025+00	{"n": 3, "text": "ÿ €", "price": 1.50}	\N	\N	100	\N	\N
en_4	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:04.00025+00	{"n": 4, "text": "ÿ €", "price": 1.50}	\N	\N	130	\N	\N
en_5	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:05.00025+00	{"n": 5, "text": "ÿ €", "price": 1.50}	\N	\N	160	\N	\N
en_6	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:06.00025+00	{"n": 6, "text": "ÿ €", "price": 1.50}	\N	\N	190	\N	\N
en_7	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:07.00025+00	{"n": 7, "text": "ÿ €", "price": 1.50}	\N	\N	220	\N	\N
en_8	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:08.00025+00	{"n": 8, "text": "ÿ €", "price": 1.50}	\N	\N	250	\N	\N
en_9	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:09.00025+00	{"n": 9, "text": "ÿ €", "price": 1.50}	\N	\N	280	\N	\N
en_10	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:10.00025+00	{"n": 10, "text": "ÿ €", "price": 1.50}	\N	\N	310	\N	\N
en_11	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:11.00025+00	{"n": 11, "text": "ÿ €", "price": 1.50}	\N	\N	340	\N	\N
en_12	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:12.00025+00	{"n": 12, "text": "ÿ €", "price": 1.50}	\N	\N	370	\N	\N
en_13	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:13.00025+00	{"n": 13, "text": "ÿ €", "price": 1.50}	\N	\N	400	\N	\N
en_14	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:14.00025+00	{"n": 14, "text": "ÿ €", "price": 1.50}	\N	\N	430	\N	\N
en_15	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:15.00025+00	{"n": 15, "text": "ÿ €", "price": 1.50}	\N	\N	460	\N	\N
en_16	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:16.00025+00	{"n": 16, "text": "ÿ €", "price": 1.50}	\N	\N	490	\N	\N
en_17	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:17.00025+00	{"n": 17, "text": "ÿ €", "price": 1.50}	\N	\N	520	\N	\N
en_18	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:18.00025+00	{"n": 18, "text": "ÿ €", "price": 1.50}	\N	\N	550	\N	\N
en_19	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:19.00025+00	{"n": 19, "text": "ÿ €", "price": 1.50}	\N	\N	580	\N	\N
en_20	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:20.00025+00	{"n": 20, "text": "ÿ €", "price": 1.50}	\N	\N	610	\N	\N
en_21	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:21.00025+00	{"n": 21, "text": "ÿ €", "price": 1.50}	\N	\N	640	\N	\N
en_22	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:22.00025+00	{"n": 22, "text": "ÿ €", "price": 1.50}	\N	\N	670	\N	\N
en_23	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:23.00025+00	{"n": 23, "text": "ÿ €", "price": 1.50}	\N	\N	700	\N	\N
en_24	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:24.00025+00	{"n": 24, "text": "ÿ €", "price": 1.50}	\N	\N	730	\N	\N
en_25	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:25.00025+00	{"n": 25, "text": "ÿ €", "price": 1.50}	\N	\N	760	\N	\N
en_26	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:26.00025+00	{"n": 26, "text": "ÿ €", "price": 1.50}	\N	\N	790	\N	\N
en_27	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:27.00025+00	{"n": 27, "text": "ÿ €", "price": 1.50}	\N	\N	820	\N	\N
odd	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:01.00025+00	\N	{"a":"\\u0000","b":1e200000}	{"a": null, "b": null, "n": null, "text": null, "price": null}	910	\N	\N
numbers	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:01.00025+00	{"a": [1, 2], "b": 1.50}	\N	\N	920	\N	\N
misfit	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:01.00025+00	{"n": "x", "text": "t"}	\N	{"a": null, "b": null, "n": null, "text": "t", "price": null}	930	\N	\N
other	gr_1	pr_1	emb_2	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:00:01.00025+00	{"b": 1.50}	\N	\N	940	\N	\N
en_28	gr_1	pr_1	emb_1	co_ü	0001-01-01 00:00:00+00	2022-01-01 00:15:01.00025+00	{"back": 1}	\N	\N	970	\N	\N
\.


--
-- Data for Name: events; Type: TABLE DATA; Schema: Copy of shop; Owner: -
--

COPY "Copy of shop".events (entry_id, contact_id, project_id, group_id, embeddable_id, embeddable_version_number, "timestamp", page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages, event_type, view_type, custom_event_name, custom_event_props, event_id, url, event_key, seq, removed_at, removal_reason) FROM stdin;
en_0	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:00.00025+00	pg_1	page-1	0	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_0/0	20	\N	\N
en_0	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:01.00025+00	pg_1	page-1	1	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_0/1	30	\N	\N
en_1	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:02.00025+00	pg_1	page-1	2	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_1/2	50	\N	\N
en_1	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:03.00025+00	pg_1	page-1	3	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_1/3	60	\N	\N
en_2	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:04.00025+00	pg_1	page-1	4	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_2/4	80	\N	\N
en_2	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:05.00025+00	pg_1	page-1	5	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_2/5	90	\N	\N
en_3	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:06.00025+00	pg_1	page-1	6	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_3/6	110	\N	\N
en_3	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:07.00025+00	pg_1	page-1	7	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_3/7	120	\N	\N
en_4	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:08.00025+00	pg_1	page-1	8	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_4/8	140	\N	\N
en_4	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:09.00025+00	pg_1	page-1	9	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_4/9	150	\N	\N
en_5	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:10.00025+00	pg_1	page-1	10	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_5/10	170	\N	\N
en_5	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:11.00025+00	pg_1	page-1	11	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_5/11	180	\N	\N
en_6	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:12.00025+00	pg_1	page-1	12	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_6/12	200	\N	\N
en_6	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:13.00025+00	pg_1	page-1	13	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_6/13	210	\N	\N
en_7	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:14.00025+00	pg_1	page-1	14	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_7/14	230	\N	\N
en_7	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:15.00025+00	pg_1	page-1	15	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_7/15	240	\N	\N
en_8	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:16.00025+00	pg_1	page-1	16	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_8/16	260	\N	\N
en_8	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:17.00025+00	pg_1	page-1	17	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_8/17	270	\N	\N
en_9	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:18.00025+00	pg_1	page-1	18	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_9/18	290	\N	\N
en_9	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:19.00025+00	pg_1	page-1	19	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_9/19	300	\N	\N
en_10	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:20.00025+00	pg_1	page-1	20	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_10/20	320	\N	\N
en_10	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:21.00025+00	pg_1	page-1	21	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_10/21	330	\N	\N
en_11	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:22.00025+00	pg_1	page-1	22	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_11/22	350	\N	\N
en_11	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:23.00025+00	pg_1	page-1	23	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_11/23	360	\N	\N
en_12	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:24.00025+00	pg_1	page-1	24	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_12/24	380	\N	\N
en_12	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:25.00025+00	pg_1	page-1	25	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_12/25	390	\N	\N
en_13	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:26.00025+00	pg_1	page-1	26	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_13/26	410	\N	\N
en_13	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:27.00025+00	pg_1	page-1	27	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_13/27	420	\N	\N
en_14	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:28.00025+00	pg_1	page-1	28	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_14/28	440	\N	\N
en_14	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:29.00025+00	pg_1	page-1	29	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_14/29	450	\N	\N
en_15	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:30.00025+00	pg_1	page-1	30	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_15/30	470	\N	\N
en_15	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:31.00025+00	pg_1	page-1	31	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_15/31	480	\N	\N
en_16	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:32.00025+00	pg_1	page-1	32	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_16/32	500	\N	\N
en_16	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:33.00025+00	pg_1	page-1	33	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_16/33	510	\N	\N
en_17	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:34.00025+00	pg_1	page-1	34	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_17/34	530	\N	\N
en_17	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:35.00025+00	pg_1	page-1	35	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_17/35	540	\N	\N
en_18	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:36.00025+00	pg_1	page-1	36	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_18/36	560	\N	\N
en_18	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:37.00025+00	pg_1	page-1	37	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_18/37	570	\N	\N
en_19	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:38.00025+00	pg_1	page-1	38	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_19/38	590	\N	\N
en_19	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:39.00025+00	pg_1	page-1	39	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_19/39	600	\N	\N
en_20	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:40.00025+00	pg_1	page-1	40	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_20/40	620	\N	\N
en_20	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:41.00025+00	pg_1	page-1	41	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_20/41	630	\N	\N
en_21	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:42.00025+00	pg_1	page-1	42	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_21/42	650	\N	\N
en_21	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:43.00025+00	pg_1	page-1	43	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_21/43	660	\N	\N
en_22	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:44.00025+00	pg_1	page-1	44	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_22/44	680	\N	\N
en_22	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:45.00025+00	pg_1	page-1	45	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_22/45	690	\N	\N
en_23	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:46.00025+00	pg_1	page-1	46	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_23/46	710	\N	\N
en_23	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:47.00025+00	pg_1	page-1	47	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_23/47	720	\N	\N
en_24	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:48.00025+00	pg_1	page-1	48	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_24/48	740	\N	\N
en_24	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:49.00025+00	pg_1	page-1	49	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_24/49	750	\N	\N
en_25	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:50.00025+00	pg_1	page-1	50	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_25/50	770	\N	\N
en_25	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:51.00025+00	pg_1	page-1	51	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_25/51	780	\N	\N
en_26	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:52.00025+00	pg_1	page-1	52	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_26/52	800	\N	\N
en_26	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:53.00025+00	pg_1	page-1	53	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_26/53	810	\N	\N
en_27	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:54.00025+00	pg_1	page-1	54	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_27/54	830	\N	\N
en_27	co_1	pr_1	gr_1	emb_1	3	2022-01-01 00:00:55.00025+00	pg_1	page-1	55	\N	\N	\N	10	flowpage.viewed	flowpage	\N	\N	\N	https://example.com/?a=1	en_27/55	840	\N	\N
\.


--
-- Data for Name: experiment_history; Type: TABLE DATA; Schema: Copy of shop; Owner: -
--

COPY "Copy of shop".experiment_history (experiment_id, change, status, changed_at, recorded_at) FROM stdin;
exp_emb_1	1	running	2022-01-01 00:00:01.00025+00	2022-01-01 00:00:01.00025+00
\.


--
-- Data for Name: experiments; Type: TABLE DATA; Schema: Copy of shop; Owner: -
--

COPY "Copy of shop".experiments (experiment_id, flow_id, name, hypothesis, impact_metrics, no_impact_metrics, created_at, updated_at, observations, outcome, attachments, variants, flow_ids, paused_showing_variant, winner_variant, status) FROM stdin;
exp_emb_1	emb_1	One	\N	{m}	{}	2022-01-01 00:00:00.00025+00	2022-01-01 00:00:01.00025+00	\N	\N	[]	{}	{emb_1}	\N	\N	running
\.


--
-- Data for Name: lectern_columns; Type: TABLE DATA; Schema: Copy of shop; Owner: -
--

COPY "Copy of shop".lectern_columns (embeddable_id, "position", key, name, type) FROM stdin;
emb_1	0	n	n	double
emb_1	1	text	text	text
emb_1	2	price	price	double
emb_2	0	b	b	double
emb_1	3	a	a	text
emb_1	4	b	b	text
emb_1	5	back	back	double
\.


--
-- Data for Name: lectern_sync; Type: TABLE DATA; Schema: Copy of shop; Owner: -
--

COPY "Copy of shop".lectern_sync (only_row, layout, project_id, url, cursor, seq, changed_at, current_at, verified_at, differences, load_to, project, columns, soft_delete, masked, revision, unfilled_from, unfilled_cursor) FROM stdin;
t	4	pr_1	http://127.0.0.1:40273	970	970	2026-11-29 05:05:22.781909+00	2026-11-29 05:05:22.781909+00	2026-11-29 05:05:22+00	0	\N	5fc9437926a38969bf1f08d4ed29d85b8cb9707858d8e0d02b52b54789cff2b4	auto	f		1	\N	\N
\.


--
-- Name: embeddable_versions embeddable_versions_pkey; Type: CONSTRAINT; Schema: Copy of shop; Owner: -
--

ALTER TABLE ONLY "Copy of shop".embeddable_versions
    ADD CONSTRAINT embeddable_versions_pkey PRIMARY KEY (embeddable_id, version_number);


--
-- Name: embeddables embeddables_pkey; Type: CONSTRAINT; Schema: Copy of shop; Owner: -
--

ALTER TABLE ONLY "Copy of shop".embeddables
    ADD CONSTRAINT embeddables_pkey PRIMARY KEY (embeddable_id);


--
-- Name: entries entries_pkey; Type: CONSTRAINT; Schema: Copy of shop; Owner: -
--

ALTER TABLE ONLY "Copy of shop".entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (entry_id);


--
-- Name: events events_pkey; Type: CONSTRAINT; Schema: Copy of shop; Owner: -
--

ALTER TABLE ONLY "Copy of shop".events
    ADD CONSTRAINT events_pkey PRIMARY KEY (event_key);


--
-- Name: experiment_history experiment_history_pkey; Type: CONSTRAINT; Schema: Copy of shop; Owner: -
--

ALTER TABLE ONLY "Copy of shop".experiment_history
    ADD CONSTRAINT experiment_history_pkey PRIMARY KEY (experiment_id, change);


--
-- Name: experiments experiments_pkey; Type: CONSTRAINT; Schema: Copy of shop; Owner: -
--

ALTER TABLE ONLY "Copy of shop".experiments
    ADD CONSTRAINT experiments_pkey PRIMARY KEY (experiment_id);


--
-- Name: lectern_columns lectern_columns_pkey; Type: CONSTRAINT; Schema: Copy of shop; Owner: -
--

ALTER TABLE ONLY "Copy of shop".lectern_columns
    ADD CONSTRAINT lectern_columns_pkey PRIMARY KEY (embeddable_id, "position");


--
-- Name: lectern_sync lectern_sync_pkey; Type: CONSTRAINT; Schema: Copy of shop; Owner: -
--

ALTER TABLE ONLY "Copy of shop".lectern_sync
    ADD CONSTRAINT lectern_sync_pkey PRIMARY KEY (only_row);


--
-- Name: entries_by_embeddable; Type: INDEX; Schema: Copy of shop; Owner: -
--

CREATE INDEX entries_by_embeddable ON "Copy of shop".entries USING btree (embeddable_id);


--
-- Name: entries_by_seq; Type: INDEX; Schema: Copy of shop; Owner: -
--

CREATE INDEX entries_by_seq ON "Copy of shop".entries USING btree (seq);


--
-- Name: events_by_entry; Type: INDEX; Schema: Copy of shop; Owner: -
--

CREATE INDEX events_by_entry ON "Copy of shop".events USING btree (entry_id, "timestamp");


--
-- Name: events_by_seq; Type: INDEX; Schema: Copy of shop; Owner: -
--

CREATE INDEX events_by_seq ON "Copy of shop".events USING btree (seq);


--
-- PostgreSQL database dump complete
--

\unrestrict F7O0xyMphM8SUq94rONoiOi4ryFtXpRPY9yefsBy1oBng2HbPVxxTBvwR1THOKu

