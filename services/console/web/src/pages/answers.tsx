// What visitors answered to all questions of an embeddable, and how many of them.
import type { AnswerKeys } from "@lectern/client";
import { useEffect, useMemo, useState } from "preact/hooks";
import { narrowedIn } from "../filters.ts";
import { created } from "../insights.ts";
import { useLoad } from "../load.ts";
import { useAsked } from "../names.ts";
import { answeredIn, type Asked, compared, countedIn, type Distribution, distributionOf, inOrder, type Of } from "../questions.ts";
import { filter, filtered, here } from "../router.ts";
import { count } from "../time.ts";
import { Filters } from "../ui/filters.tsx";
import { Given } from "../ui/given.tsx";
import { EmbeddableHead, InPeriod } from "../ui/frame.tsx";
import { Text } from "../ui/parts.tsx";
import { Empty, Loaded } from "../ui/state.tsx";

/** How many values of each question are read: as many as the API lists. */
const mostValues = 50;

/** Answers shows the answers to all questions of an embeddable. */
export function Answers({ project, id }: { project: string; id: string }) {
  const narrowed = narrowedIn(here.value.query);
  return (
    <>
      <EmbeddableHead project={project} id={id} current="answers" lead="What visitors answered, and how many of them." />
      <InPeriod project={project} id={id} filters={<Filters project={project} embeddable={id} of={narrowed} />}>{(span) => <Answered project={project} of={{ embeddable_id: id, ...narrowed, ...created(span) }} />}</InPeriod>
    </>
  );
}

/** A question with its title. The first questions have their answers. */
interface Question {
  key: string;
  title: string;
  answered: number;
  given: Distribution | undefined;
}

function Answered({ project, of }: { project: string; of: Of }) {
  // One request has the answers to the first 100 questions.
  const load = useLoad(({ client, signal }) => client.answerKeys(project, { ...compared(of), values: mostValues }, { signal }), ["all answers", project, of]);
  const keys = useMemo(() => load.value?.keys.map(({ key }) => key) ?? [], [load.value]);
  const { asked, ready } = useAsked(project, of.embeddable_id, keys);
  return (
    <Loaded load={ready ? load : { ...load, state: "loading", value: undefined }} what="the answers" rows={6}>
      {(all) => {
        const questions = questionsIn(all, asked);
        return questions.length === 0 ? <Empty title="Nothing was answered in this period" /> : <Questions project={project} of={of} questions={questions} unreadable={all.unreadable} />;
      }}
    </Loaded>
  );
}

/** questionsIn joins the answers with the questions of the definition. The API has no figures of an empty key. */
function questionsIn(all: AnswerKeys, asked: ReadonlyMap<string, Asked>): Question[] {
  return inOrder(all.keys, asked).filter(({ key }) => key !== "").map((one) => {
    const given = distributionOf(all, one);
    return { key: one.key, title: asked.get(one.key)?.title ?? "", answered: given ? answeredIn(given) : one.entries, given };
  });
}

/** How many questions are drawn at first, and from how many on a search finds them. */
const firstQuestions = 30;
const searched = 10;

/** jump shows the answers to a question. It reports whether the page has them. */
function jump(key: string): boolean {
  const found = [...document.querySelectorAll<HTMLElement>("section[data-key]")].find((one) => one.dataset["key"] === key);
  found?.scrollIntoView();
  found?.querySelector("h2")?.focus({ preventScroll: true });
  return found !== undefined;
}

function Questions({ project, of, questions, unreadable }: { project: string; of: Of; questions: Question[]; unreadable: number }) {
  // An address can name the question that it is about. It does so once, so that the way back leads to where the visitor was.
  const wanted = here.value.query.get("key");
  const [search, setSearch] = useState("");
  const [all, setAll] = useState(false);
  useEffect(() => {
    if (wanted === null) return;
    if (jump(wanted)) filter({ key: "" }, true);
    else setAll(true);
  }, [wanted, all]);
  const found = questions.filter(({ key, title }) => `${title} ${key}`.toLowerCase().includes(search.trim().toLowerCase()));
  const shown = all ? found : found.slice(0, firstQuestions);
  const open = (event: MouseEvent, key: string) => {
    if (!(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) && jump(key)) event.preventDefault();
  };
  return (
    <div class="questions">
      <nav class="card" aria-label="Questions">
        <ul class="keylist">
          {found.map(({ key, title, answered }) => (
            <li key={key}>
              <a href={filtered({ key })} onClick={(event) => open(event, key)}>
                <Text>{cut(title || key)}</Text> <span class="muted small">{count(answered)}</span>
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="page">
        {unreadable > 0 && <p class="muted small">The data of {count(unreadable)} {unreadable === 1 ? "entry" : "entries"} cannot be read.</p>}
        {questions.length > searched && (
          <input type="search" aria-label="Search the questions" placeholder="Search the questions" value={search} onInput={(e) => setSearch(e.currentTarget.value)} spellcheck={false} />
        )}
        {shown.map((question) => <Section key={question.key} project={project} of={of} question={question} />)}
        {found.length === 0 && <p class="muted">No question has a title or key like this.</p>}
        {shown.length < found.length && <p class="actions"><button type="button" class="quiet" onClick={() => setAll(true)}>Show all {found.length} questions</button></p>}
      </div>
    </div>
  );
}

/** How much of a title the list of questions shows, in characters. */
const longestTitle = 120;
const cut = (title: string) => (title.length > longestTitle ? `${title.slice(0, longestTitle)}…` : title);

function Section({ project, of, question: { key, title, given } }: { project: string; of: Of; question: Question }) {
  const [open, setOpen] = useState(false);
  return (
    <section class="card" data-key={key}>
      <h2 tabIndex={-1}><Text>{title || key}</Text> {title && <code class="muted"><Text>{key}</Text></code>}</h2>
      {given ? (
        <Given project={project} of={of} name={key} title={title} given={given} />
      ) : (
        <details onToggle={(e) => setOpen(e.currentTarget.open)}>
          <summary class="small">The answers</summary>
          {open && <Later project={project} of={of} name={key} title={title} />}
        </details>
      )}
    </section>
  );
}

/** Later reads the answers to a question after the first 100. */
function Later({ project, of, name, title }: { project: string; of: Of; name: string; title: string }) {
  const load = useLoad(({ client, signal }) => client.answers(project, { ...compared(of), key: name }, { signal }), ["answers", project, of, name]);
  return <Loaded load={load} what="the answers" rows={3}>{(given) => <Given project={project} of={of} name={name} title={title} given={{ ...given, values: countedIn(given.values) }} />}</Loaded>;
}
