// What visitors answered to all questions of an embeddable, and how many of them.
import type { AnswerKeys } from "@lectern/client";
import { useEffect, useMemo, useState } from "preact/hooks";
import { narrowedIn } from "../filters.ts";
import { created } from "../insights.ts";
import { type Load, type Reading, useLoad } from "../load.ts";
import { useAsked } from "../names.ts";
import { toJSON } from "../numbers.ts";
import type { Span } from "../period.ts";
import { answeredIn, type Asked, changedIn, countedIn, distributionOf, type Given as Answer, inOrder, kindOf, type Of, type Texts } from "../questions.ts";
import { filter, filtered, here } from "../router.ts";
import { count, counted, percent } from "../time.ts";
import { Filters } from "../ui/filters.tsx";
import { Given, written } from "../ui/given.tsx";
import { EmbeddableHead, InPeriod } from "../ui/frame.tsx";
import { OverTime } from "../ui/overtime.tsx";
import { Change, More, Opened, QuestionName, Text } from "../ui/parts.tsx";
import { Empty, Loaded, Problem } from "../ui/state.tsx";

/** How many values of each question are read: as many as the API lists. */
const mostValues = 50;

/** Answers shows the answers to all questions of an embeddable. */
export function Answers({ project, id }: { project: string; id: string }) {
  const narrowed = narrowedIn(here.value.query);
  return (
    <>
      <EmbeddableHead project={project} id={id} current="answers" lead="What visitors answered, and how many of them." />
      <InPeriod project={project} id={id} filters={<Filters project={project} embeddable={id} of={narrowed} />}>{(span) => <Answered project={project} span={span} of={{ embeddable_id: id, ...narrowed, ...created(span) }} />}</InPeriod>
    </>
  );
}

/** A question with its title. The first questions have their answers. */
interface Question {
  key: string;
  title: string;
  texts: Texts | undefined;
  answered: number;
  given: Answer | undefined;
}

/** useBoth reads something of a period, and of the one before if there is one. The period has its value also if the one before has none. */
function useBoth<T>(of: Of, { before }: Span, read: (reading: Reading, of: Of) => Promise<T>, inputs: [name: string, ...unknown[]]): { now: Load<T>; before: Load<T> | undefined } {
  const earlier = { ...of, ...(before && created(before)) };
  const now = useLoad((reading) => read(reading, of), [...inputs, of]);
  const old = useLoad((reading) => read(reading, earlier), [...inputs, earlier], before !== undefined);
  // Nothing is compared with the value of other inputs.
  return { now, before: before && (old.stale ? { ...old, value: undefined, stale: false } : old) };
}

function Answered({ project, of, span }: { project: string; of: Of; span: Span }) {
  // One request of each period has the answers to the first 100 questions.
  const { now, before } = useBoth(of, span, ({ client, signal }, of) => client.answerKeys(project, { ...of, values: mostValues }, { signal }), ["all answers", project]);
  const { asked, texts, ready } = useAsked(project, of.embeddable_id, now.value?.keys.map(({ key }) => key) ?? []);
  return (
    <Loaded load={ready ? now : { ...now, state: "loading", value: undefined }} what="the answers" rows={6}>
      {(all) => {
        const questions = questionsIn(all, before?.value, asked, texts);
        return questions.length === 0 ? <Empty title="Nothing was answered in this period" /> : <Questions project={project} of={of} span={span} questions={questions} all={all} before={before} />;
      }}
    </Loaded>
  );
}

/** questionsIn joins the answers with the questions of the definition. The API has no figures of an empty key. */
function questionsIn(all: AnswerKeys, before: AnswerKeys | undefined, asked: ReadonlyMap<string, Asked>, texts: ReadonlyMap<string, Texts>): Question[] {
  const earlier = new Map(before?.keys.map((one) => [one.key, one]));
  return inOrder(all.keys, asked).filter(({ key }) => key !== "").map((one) => {
    const now = distributionOf(all, one);
    const old = earlier.get(one.key);
    return { key: one.key, title: asked.get(one.key)?.title ?? "", texts: texts.get(one.key), answered: now ? answeredIn(now) : one.entries, given: now && { now, before: before && old && distributionOf(before, old) } };
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

/** How many answers that changed are listed. */
const mostChanged = 5;

/** Changes shows how many entries there are against the period before, and the answers that changed most. */
function Changes({ questions, name, now, before, open }: { questions: Question[]; name: string; now: number; before: number; open: (event: MouseEvent, key: string) => void }) {
  const changed = useMemo(() => changedIn(questions), [questions]);
  return (
    <>
      <p class="muted small">{counted(now, "entry", "entries")}, {before > 0 ? <><Change now={now} old={before} /> against</> : "none in"} {name}. The change of an answer is that of its share among entries with an answer.</p>
      {changed.length === 0 ? <p>{before > 0 && "No share of an answer changed by more than chance explains."}</p> : (
        <ul class="rows">
          {changed.slice(0, mostChanged).map(({ question: { key, title, texts }, value, now, old }) => (
            <li key={`${key} ${toJSON(value)}`}>
              <a href={filtered({ key })} onClick={(event) => open(event, key)}><Text most={longestTitle}>{title || key}</Text></a>
              <span><Text most={longestTitle}>{written(toJSON(value), texts)}</Text></span>
              <span class="small number">{percent(old)} → {percent(now)}, <Change now={now} old={old} points /></span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Questions({ project, of, span, questions, all: { entries, unreadable }, before }: { project: string; of: Of; span: Span; questions: Question[]; all: AnswerKeys; before: Load<AnswerKeys> | undefined }) {
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
                <Text most={longestTitle}>{title || key}</Text> <span class="muted small">{count(answered)}</span>
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="page">
        {before && (
          <section class="card" aria-labelledby="changed">
            <h2 id="changed">Changed most</h2>
            <Loaded load={before} what="the period before" rows={2}>
              {(earlier) => <Changes questions={questions} name={span.before?.name ?? ""} now={entries} before={earlier.entries} open={open} />}
            </Loaded>
          </section>
        )}
        {unreadable > 0 && <p class="muted small">The data of {count(unreadable)} {unreadable === 1 ? "entry" : "entries"} cannot be read.</p>}
        {questions.length > searched && (
          <input type="search" aria-label="Search the questions" placeholder="Search the questions" value={search} onInput={(e) => setSearch(e.currentTarget.value)} spellcheck={false} />
        )}
        {shown.map((question) => <Section key={question.key} project={project} of={of} span={span} question={question} />)}
        {found.length === 0 && <p class="muted">No question has a title or key like this.</p>}
        {shown.length < found.length && <More show={() => setAll(true)}>Show all {found.length} questions</More>}
      </div>
    </div>
  );
}

/** How much of a title the list of questions shows, in characters. */
const longestTitle = 120;

function Section({ project, of, span, question: { key, title, texts, given } }: { project: string; of: Of; span: Span; question: Question }) {
  return (
    <section class="card" data-key={key}>
      <h2 tabIndex={-1}><QuestionName title={title} name={key} /></h2>
      {given ? (
        <Given project={project} of={of} name={key} title={title} texts={texts} given={given.now} before={given.before} />
      ) : (
        <Opened name="The answers">{() => <Later project={project} of={of} span={span} name={key} title={title} texts={texts} />}</Opened>
      )}
      {given && given.now.values.length > 0 && kindOf(given.now, title, key) !== "texts" && <Opened name="Over time">{() => <OverTime project={project} of={of} span={span} name={key} texts={texts} />}</Opened>}
    </section>
  );
}

/** Later reads the answers to a question after the first 100. */
function Later({ project, of, span, name, title, texts }: { project: string; of: Of; span: Span; name: string; title: string; texts: Texts | undefined }) {
  const read = async ({ client, signal }: Reading, of: Of) => {
    const given = await client.answers(project, { ...of, key: name }, { signal });
    return { ...given, values: countedIn(given.values) };
  };
  const { now, before } = useBoth(of, span, read, ["answers", project, name]);
  return (
    <Loaded load={now} what="the answers" rows={3}>
      {(given) => (
        <>
          {before?.error && <Problem error={before.error} retry={before.reload} />}
          <Given project={project} of={of} name={name} title={title} texts={texts} given={given} before={before?.value} />
        </>
      )}
    </Loaded>
  );
}
