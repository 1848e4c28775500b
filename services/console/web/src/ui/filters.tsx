// The filters that all figures and lists of entries have in common: as chips, and a dialog that adds them.
import { useState } from "preact/hooks";
import { inOrder, type Narrowed } from "../questions.ts";
import { useLoad } from "../load.ts";
import { useAsked } from "../names.ts";
import { place, toJSON } from "../numbers.ts";
import { filter } from "../router.ts";
import { Dialog } from "./dialogs.tsx";
import { written } from "./given.tsx";
import { Chip, pageName, Select, Text } from "./parts.tsx";
import { Loaded } from "./state.tsx";

interface Props {
  project: string;
  /** Questions, pages and versions are of one embeddable. */
  embeddable: string | undefined;
  of: Narrowed;
}

/** How much of an answer is drawn, in characters. */
const longest = 120;

/** Filters shows the filters of the address, each of which can be removed, and adds others. */
export function Filters({ project, embeddable, of }: Props) {
  const [open, setOpen] = useState(false);
  const { completed, version, furthest_page, answer, answer_key } = of;
  return (
    <>
      <button type="button" class="quiet" onClick={() => setOpen(true)}>Add filter</button>
      {completed !== undefined && <Chip remove={() => filter({ completed: "" })}>{completed ? "completed" : "not completed"}</Chip>}
      {version !== undefined && <Chip remove={() => filter({ version: "" })}>version {version}</Chip>}
      {furthest_page !== undefined && <Chip remove={() => filter({ furthest_page: "" })}>furthest page {furthest_page + 1}</Chip>}
      {answer && <Chip remove={() => filter({ answer: "", answer_key: "" })}><Answered project={project} embeddable={embeddable} name={answer_key} json={answer} /></Chip>}
      {open && <Adding project={project} embeddable={embeddable} of={of} close={() => setOpen(false)} />}
    </>
  );
}

/** Answered shows an answer with the title of its question, or with the key if the definition has no title. */
function Answered({ project, embeddable = "", name, json }: { project: string; embeddable: string | undefined; name: string | undefined; json: string }) {
  const { asked, texts } = useAsked(project, embeddable, name ? [name] : []);
  const title = name ? asked.get(name)?.title || name : "answer";
  return <><Text most={longest}>{title}</Text>{title.endsWith("?") ? " " : ": "}<Text most={longest}>{written(json, texts.get(name ?? ""))}</Text></>;
}

/** from returns the choices of a filter. */
const from = <T,>(list: readonly T[], choice: (one: T) => [string, string]): [string, string][] => [["", "All"], ...list.map(choice)];

/** Completed filters by completion. */
export const Completed = ({ value }: { value: boolean | undefined }) => <Select label="Completed" value={value} options={from([true, false], (is) => [String(is), is ? "Completed" : "Not completed"])} choose={(completed) => filter({ completed })} />;

/** How many values of a question can be chosen: as many as the API lists. */
const mostValues = 50;

function Adding({ project, embeddable, of, close }: Props & { close: () => void }) {
  const [key, setKey] = useState(of.answer_key ?? "");
  const load = useLoad(
    async ({ client, signal }) => {
      if (!embeddable) return { pages: [], versions: [], keys: [] };
      const which = { embeddable_id: embeddable };
      const [[all], counts, { keys }] = await Promise.all([
        client.funnels(project, which, { signal }),
        client.entryCounts(project, { ...which, interval: "all", by: "version" }, { signal }),
        client.answerKeys(project, { ...which, values: mostValues }, { signal }),
      ]);
      return { pages: all?.pages ?? [], versions: counts.flatMap(({ version_number: n }) => (n === null ? [] : [String(n)])), keys };
    },
    ["filters", project, embeddable],
  );
  const { asked, texts } = useAsked(project, embeddable ?? "", load.value?.keys.map(({ key }) => key) ?? []);
  return (
    <Dialog label="Add filter" close={close}>
      <h2>Add filter</h2>
      <div class="filters">
        {"completed" in of && <Completed value={of.completed} />}
        <Loaded load={load} what="the choices" rows={2}>
          {({ pages, versions, keys }) =>
            embeddable ? (
              <>
                <Select label="Furthest page" value={of.furthest_page} options={from(pages, (page) => [String(page.page_index), `${place(page.page_index)} ${pageName(page)}`])} choose={(furthest_page) => filter({ furthest_page })} />
                <Select label="Version" value={of.version} options={from(versions, (n) => [n, n])} choose={(version) => filter({ version })} />
                <Select label="Question" value={key} options={from(inOrder(keys, asked), ({ key }) => [key, (asked.get(key)?.title || key).slice(0, longest)])} choose={setKey} />
                {key && <Select label="Answer" value={of.answer_key === key ? of.answer : ""} options={from(keys.find((one) => one.key === key)?.values ?? [], ({ value }) => [toJSON(value), written(toJSON(value), texts.get(key)).slice(0, longest)])} choose={(answer) => filter({ answer, answer_key: answer && key })} />}
              </>
            ) : (
              <p class="muted small">Choose an embeddable for more filters.</p>
            )
          }
        </Loaded>
      </div>
      <p class="actions"><button type="button" onClick={close}>Done</button></p>
    </Dialog>
  );
}
