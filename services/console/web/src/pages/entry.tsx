// One entry: its answers, and the path of the visitor through the pages.
import type { Client, Entry, EntryEvent } from "@lectern/client";
import { useMemo, useState } from "preact/hooks";
import { answersOf, titleOf } from "../answers.ts";
import { created } from "../insights.ts";
import { stopsOf, type Stop } from "../journey.ts";
import { useLoad } from "../load.ts";
import { useNames } from "../names.ts";
import { place } from "../numbers.ts";
import { address } from "../router.ts";
import { clock, count, counted, day, duration } from "../time.ts";
import { AnswerList } from "../ui/answered.tsx";
import { Share } from "../ui/bars.tsx";
import { Badge, CopyButton, Field, More, PageHead, Text, Time } from "../ui/parts.tsx";
import { Loaded } from "../ui/state.tsx";
import { LongText, Value } from "../ui/value.tsx";

/** How many answers and how many page views are drawn at first. */
const firstItems = 200;

/** How many events are read at most. */
const mostEvents = 10_000;

/** EntryPage is the page. */
export function EntryPage({ project, id }: { project: string; id: string }) {
  const entry = useLoad<Entry>(({ client, signal }) => client.entry(project, id, { signal }), ["entry", project, id]);
  return (
    <>
      <PageHead title={entry.value ? titleOf(entry.value) || "No answers yet" : id} lead={entry.state !== "failed" && <code class="wrap">{id}</code>}>
        {/* The entry before stays while this one loads, but its links would lead here. */}
        {entry.value?.entry_id === id && <Neighbours key={id} project={project} entry={entry.value} />}
      </PageHead>
      <Loaded load={entry} what="the entry" rows={6}>
        {(value) => (
          <div class="entry">
            <div class="page">
              <Answered project={project} entry={value} />
              <Journey project={project} id={id} />
            </div>
            <About project={project} entry={value} />
          </div>
        )}
      </Loaded>
    </>
  );
}

/** How many entries of the same time are passed over at most, to find the one after this. Beyond, there is no link. */
const mostEqual = 200;

/** Neighbours are links to the entries of the same embeddable that were created before and after this one. */
function Neighbours({ project, entry }: { project: string; entry: Entry }) {
  const load = useLoad(
    async ({ client, signal }) => {
      const at = Date.parse(entry.created_at);
      // Entries of the same time have an order, too. So each list begins with those of this entry's millisecond.
      const after = async (direction: "ASC" | "DESC") => {
        const { created_after, created_before } = created({ from: at, until: at + 1 });
        const from = direction === "ASC" ? { created_after } : { created_before };
        let found = false;
        for await (const one of client.entries(project, { embeddable_id: entry.embeddable_id, sort: "created_at", direction, ...from, limit: mostEqual, pageSize: 20 }, { signal })) {
          if (found) return one;
          found = one.entry_id === entry.entry_id;
        }
        return undefined;
      };
      const [older, newer] = await Promise.all([after("DESC"), after("ASC")]);
      return { older, newer };
    },
    ["neighbours", project, entry.entry_id],
  );
  const link = (to: Entry | undefined, rel: string, key: string, name: string) => to && <a class="button quiet" rel={rel} aria-keyshortcuts={key} href={address(project, "entries", to.entry_id)}>{name}</a>;
  return (
    <>
      {link(load.value?.newer, "prev", "k", "Newer")}
      {link(load.value?.older, "next", "j", "Older")}
    </>
  );
}

function Answered({ project, entry }: { project: string; entry: Entry }) {
  const data = entry.entry_data;
  const answers = useMemo(() => answersOf(data), [data]);
  const [raw, setRaw] = useState(false);
  const [most, setMost] = useState(firstItems);
  return (
    <section class="card" aria-labelledby="answers" data-answers={answers?.size ?? -1}>
      <div class="cardhead">
        <h2 id="answers">Answers</h2>
        <div class="actions">
          {answers && (
            <button type="button" class="quiet small" aria-pressed={raw} onClick={() => setRaw(!raw)}>
              Raw JSON
            </button>
          )}
          <CopyButton text={() => data} label="Copy JSON" />
        </div>
      </div>
      {!answers && (
        <p>
          <Badge tone="busy">Raw</Badge> The data of this entry is not a JSON object. It is shown as it is stored.
        </p>
      )}
      {raw || !answers ? (
        <LongText code>{data}</LongText>
      ) : answers.size === 0 ? (
        <p class="muted">The visitor has not answered anything.</p>
      ) : (
        <>
          <AnswerList project={project} embeddable={entry.embeddable_id} answers={answers} most={most} />
          {answers.size > most && <More show={() => setMost(most * 10)}>Show more ({count(answers.size - most)} answers left)</More>}
        </>
      )}
    </section>
  );
}

/** How many entries a contact may have updated in one millisecond, so that the address of each is found. */
const mostUpdated = 20;

/** urlOf returns the address of the first page that the visitor viewed, or null. Only the list of page views has addresses, and it takes no id of an entry. */
async function urlOf(client: Client, project: string, { entry_id, embeddable_id, contact_id, group_id, updated_at }: Entry, signal: AbortSignal): Promise<string | null> {
  const at = Date.parse(updated_at);
  const { created_after: updated_after, created_before: updated_before } = created({ from: at, until: at + 1 });
  const entries = await Array.fromAsync(client.pageViews(project, { embeddable_id, contact_id, group_id, updated_after, updated_before, include_urls: true, limit: mostUpdated }, { signal }));
  return entries.find((one) => one.entry_id === entry_id)?.page_views.find(({ url }) => url)?.url ?? null;
}

function About({ project, entry }: { project: string; entry: Entry }) {
  const title = useNames(project)(entry.embeddable_id);
  const { value: url } = useLoad(({ client, signal }) => urlOf(client, project, entry, signal), ["url", project, entry.entry_id, entry.updated_at]);
  return (
    <section class="card about" aria-labelledby="about">
      <h2 id="about">About</h2>
      <dl>
        <Field name="Created"><Time at={entry.created_at} /></Field>
        <Field name="Updated"><Time at={entry.updated_at} /></Field>
        {url && <Field name="Web page" note="Where the visitor began"><Text>{url}</Text></Field>}
        <Field name="Embeddable" note={title !== entry.embeddable_id && <Text>{entry.embeddable_id}</Text>}><a href={address(project, "funnel", entry.embeddable_id)}><Text>{title}</Text></a></Field>
        <Field name="Contact" note="All entries of this visitor"><a href={address(project, "contacts", entry.contact_id)}><Text>{entry.contact_id}</Text></a></Field>
        <Field name="Group" note={<a href={address(project, "entries", "", { group: entry.group_id, days: "0" })}>Entries of this group</a>}><Text>{entry.group_id}</Text></Field>
      </dl>
    </section>
  );
}

function Journey({ project, id }: { project: string; id: string }) {
  const load = useLoad<EntryEvent[]>(({ client, signal }) => Array.fromAsync(client.events(project, id, { direction: "ASC", limit: mostEvents }, { signal })), ["events", project, id]);
  return (
    <section class="card" aria-labelledby="journey" data-events={load.state === "done" ? load.value?.length : undefined}>
      <h2 id="journey">Path through the pages</h2>
      <Loaded load={load} what="the events" rows={4}>
        {(events) => (events.length > 0 ? <Stops events={events} partial={events.length === mostEvents} /> : <p class="muted">This entry has no events.</p>)}
      </Loaded>
    </section>
  );
}

function Stops({ events, partial }: { events: EntryEvent[]; partial: boolean }) {
  const [most, setMost] = useState(firstItems);
  const stops = useMemo(() => stopsOf(events), [events]);
  const longest = Math.max(1, ...stops.slice(0, 10_000).map((stop) => stop.duration ?? 0));
  const [first, last] = [events[0], events.at(-1)];
  const versions = [...new Set(events.map((event) => event.embeddable_version_number).filter((n) => n !== null))];
  const views = stops.filter((stop) => stop.view).length;
  const total = first && last ? Date.parse(last.timestamp) - Date.parse(first.timestamp) : 0;
  return (
    <>
      <p class="muted">
        {counted(views, "page view", "page views")} and {counted(events.length - views, "other event", "other events")} in {duration(total)}
        {versions.length > 0 && `, ${versions.length > 1 ? "versions" : "version"} ${versions.slice(0, 5).join(", ")}${versions.length > 5 ? "…" : ""} of the embeddable`}
        {partial ? ". These are the first events; there are more." : "."}
      </p>
      <ol class="journey">
        {stops.slice(0, most).map((stop, i) => (
          <StopItem key={i} stop={stop} before={stops[i - 1]} longest={longest} manyVersions={versions.length > 1} last={i === stops.length - 1} />
        ))}
      </ol>
      {stops.length > most && <More show={() => setMost(most + 1000)}>Show more ({count(stops.length - most)} page views left)</More>}
    </>
  );
}

interface StopProps {
  stop: Stop;
  before: Stop | undefined;
  longest: number;
  manyVersions: boolean;
  last: boolean;
}

function StopItem({ stop, before, longest, manyVersions, last }: StopProps) {
  const { view } = stop;
  const date = day(Date.parse(stop.start));
  const newDay = !before || day(Date.parse(before.start)) !== date;
  return (
    <li class={view ? "view" : ""}>
      {newDay && <p class="muted small date">{date}</p>}
      {view && (
        <div class="stop">
          <Time at={view.timestamp} show={clock} />
          <div class="what">
            <strong><Text>{view.page_key || view.page_id || "A page without a name"}</Text></strong>{" "}
            <span class="muted small">
              {view.page_index !== null && `page ${place(view.page_index)}${view.total_pages === null ? "" : ` of ${count(view.total_pages)}`}`}
              {manyVersions && view.embeddable_version_number !== null && `, version ${view.embeddable_version_number}`}
            </span>
          </div>
          <span class="track" aria-hidden="true">
            {stop.duration !== undefined && <Share first={Math.max(0, stop.duration) / longest} />}
          </span>
          <span class="number">
            {stop.duration === undefined ? <span class="muted small">last view</span> : `${last ? "at least " : ""}${duration(stop.duration)}`}
          </span>
        </div>
      )}
      {stop.events.length > 0 && <Happened stop={stop} />}
    </li>
  );
}

function Happened({ stop }: { stop: Stop }) {
  const [most, setMost] = useState(firstItems);
  return (
    <>
      <ul class="happened">
        {stop.events.slice(0, most).map((event, i) => (
          <li key={i}>
            <Time at={event.timestamp} show={clock} />
            <div class="what">
              <Text>{event.custom_event_name || event.event_type}</Text>
              {!stop.view && event.page_key && (
                <span class="muted small"> on <Text>{event.page_key}</Text></span>
              )}
              {event.custom_event_props !== null && <Props json={event.custom_event_props} />}
            </div>
          </li>
        ))}
      </ul>
      {stop.events.length > most && <More show={() => setMost(most + 1000)}>Show more ({count(stop.events.length - most)} events left)</More>}
    </>
  );
}

/** Props shows the properties of a custom event: JSON within a text, as an entry's data is. */
function Props({ json }: { json: string }) {
  const found = useMemo(() => answersOf(json), [json]);
  if (!found) return <LongText code>{json}</LongText>;
  if (found.size === 0) return null;
  return (
    <dl class="props small">
      {[...found].slice(0, 50).map(([name, value]) => (
        <div key={name}>
          <dt><Text>{name.slice(0, 200)}</Text></dt>
          <dd><Value json={value} /></dd>
        </div>
      ))}
      {found.size > 50 && <div class="muted">and {count(found.size - 50)} more</div>}
    </dl>
  );
}
