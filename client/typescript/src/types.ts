import type { components, operations } from "./schema.js";

type Schemas = components["schemas"];

export type Entry = Schemas["Entry"];
export type EntryEvent = Schemas["EntryEvent"];
export type FeedEvent = Schemas["FeedEvent"];
export type PageView = Schemas["PageView"];
export type EntryPageViews = Schemas["EntryPageViews"];
export type Change = Schemas["FeedChange"];
export type EntryChange = Schemas["EntryChange"];
export type EventChange = Schemas["EventChange"];
export type RemovalChange = Schemas["RemovalChange"];
export type Embeddable = Schemas["Embeddable"];
export type EmbeddableWithDefinition = Schemas["EmbeddableWithDefinition"];
export type EmbeddableVersion = Schemas["EmbeddableVersion"];
export type EmbeddableVersionWithDefinition = Schemas["EmbeddableVersionWithDefinition"];
export type Experiment = Schemas["Experiment"];
export type StatusChange = Schemas["ExperimentStatusChange"];
export type EntryCount = Schemas["EntryCount"];
export type Funnel = Schemas["Funnel"];
export type FunnelPage = Schemas["FunnelPage"];
export type Answers = Schemas["Answers"];
export type EntriesOverview = Schemas["EntriesOverview"];
export type AnswerKeys = Schemas["AnswerKeys"];
export type Project = Schemas["Project"];
export type OwnProject = Schemas["OwnProject"];
export type ErrorCode = Schemas["ErrorCode"];

/** Paging controls the iteration over a list. */
export interface Paging {
  /** limit bounds the number of records. Default: no limit. */
  limit?: number | undefined;
  /** pageSize is how many records one request asks for, 1 to 1,000,000. Default: 1,000. The text of one page is kept in memory. */
  pageSize?: number | undefined;
  /** cursor continues after an earlier page of the same query. */
  cursor?: string | undefined;
}

type ParametersOf<Operation extends keyof operations> = NonNullable<operations[Operation]["parameters"]["query"]>;

/** Filters are the parameters of an operation, by their names in the API. A time may also be a Date. */
type Filters<Operation extends keyof operations> = {
  [Name in Exclude<keyof ParametersOf<Operation>, keyof Paging>]?:
    | ParametersOf<Operation>[Name]
    | (Name extends "created_after" | "created_before" | "updated_after" | "updated_before" ? Date : never)
    | undefined;
};

/** EntryQuery selects entries. */
export interface EntryQuery extends Paging, Filters<"listEntries"> {}
/** EventQuery selects events of one entry. */
export interface EventQuery extends Paging, Filters<"listEntryEvents"> {}
/** PageViewQuery selects entries for a list of page views. */
export interface PageViewQuery extends Paging, Filters<"listEntriesPageViews"> {}
/** EmbeddableQuery selects embeddables. */
export interface EmbeddableQuery extends Paging, Filters<"listEmbeddables"> {}
/** VersionQuery selects versions of one embeddable. */
export interface VersionQuery extends Paging, Filters<"listEmbeddableVersions"> {}
/** ExperimentQuery selects experiments. */
export interface ExperimentQuery extends Paging, Filters<"listExperiments"> {}

/** CountQuery selects entries to count, and says by what. */
export type CountQuery = Filters<"countEntries">;
/** OverviewQuery selects the entries of an overview. */
export type OverviewQuery = Filters<"getEntriesOverview">;
/** FunnelQuery selects the entries of a funnel. */
export type FunnelQuery = Filters<"getEntriesFunnel"> & { embeddable_id: string };
/** AnswerQuery selects the entries of answers. */
export type AnswerQuery = Filters<"getEntriesAnswers"> & { embeddable_id: string };

/** ChangeType is the type of a change. */
export type ChangeType = Change["change"];

/** ChangeQuery selects changes of a project. */
export interface ChangeQuery {
  /** cursor is the nextCursor of an earlier page of the same project and types. Default: the beginning. */
  cursor?: string | undefined;
  /** after starts the feed after the change of this number, or with "now" after the newest one. Only without a cursor. */
  after?: number | "now" | undefined;
  /** limit bounds the number of changes in one page, 1 to 1,000,000. Default: 1,000. */
  limit?: number | undefined;
  /** types are the types to read. Default: all. A cursor is only valid for the same types. */
  types?: readonly ChangeType[] | undefined;
}

/** FollowQuery selects changes of a project to follow. */
export interface FollowQuery extends ChangeQuery {
  /** wait is how many seconds the server waits for a change before it answers with an empty page, 1 to 60. Default: 30. */
  wait?: number | undefined;
}

/** ChangePage is one page of a change feed. */
export interface ChangePage {
  /** changes may be empty even if the reader is not current. */
  changes: Change[];
  /** nextCursor continues after this page. It never expires. */
  nextCursor: string;
  /** current reports that the reader has all existing changes. */
  current: boolean;
  /** lastSeq is the number of the project's newest change; 0 for none. */
  lastSeq: number;
}
