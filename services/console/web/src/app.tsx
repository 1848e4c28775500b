// Chooses what the window shows: the sign-in, or the shell with a page in it.
import type { ComponentChildren, ComponentType } from "preact";
import { useErrorBoundary } from "preact/hooks";
import { errorOf } from "./errors.ts";
import { Answers } from "./pages/answers.tsx";
import { Connect } from "./pages/connect.tsx";
import { ContactPage } from "./pages/contact.tsx";
import { EmbeddablePage } from "./pages/embeddable.tsx";
import { Embeddables } from "./pages/embeddables.tsx";
import { Entries } from "./pages/entries.tsx";
import { EntryPage } from "./pages/entry.tsx";
import { ExperimentPage } from "./pages/experiment.tsx";
import { Experiments } from "./pages/experiments.tsx";
import { Funnel } from "./pages/funnel.tsx";
import { Overview } from "./pages/overview.tsx";
import { Projects } from "./pages/projects.tsx";
import { SignIn } from "./pages/signin.tsx";
import { here, listOf, type Page } from "./router.ts";
import { asking, session } from "./session.ts";
import { signing } from "./tokens.ts";
import { Kept } from "./ui/frame.tsx";
import { PageHead } from "./ui/parts.tsx";
import { Shell } from "./ui/shell.tsx";
import { Loading, Problem } from "./ui/state.tsx";

type View = ComponentType<{ project: string; id: string }>;

/** For each page, its list and its page of one subject. */
const views: Record<Page, [View | undefined, View?]> = {
  overview: [Overview],
  entries: [Entries, EntryPage],
  contacts: [undefined, ContactPage],
  funnel: [undefined, Funnel],
  answers: [undefined, Answers],
  embeddables: [Embeddables, EmbeddablePage],
  experiments: [Experiments, ExperimentPage],
  connect: [Connect],
};

/** App is the whole console. */
export function App() {
  const current = session.value;
  const { project, page, id, query } = here.value;
  if (!current && asking.value) return null;
  if (!current && signing.value === "silent") return <main class="signin"><Loading what="your session" /></main>;
  if (current?.tokens && project === "") return <Projects />;
  if (!current || (!current.tokens && project !== "" && project !== current.project)) return <SignIn project={project} />;
  const shown = current.tokens ? project : current.project;
  const View = page && views[page][id ? 1 : 0];
  const embeddable = page === "entries" && !id ? query.get("embeddable") : page && page !== "contacts" && listOf(page) === "embeddables" ? id : "";
  return (
    <Shell project={shown} page={page}>
      {embeddable && <Kept key={embeddable} project={shown} id={embeddable} />}
      <Guarded key={`${page} ${id}`}>{View ? <View project={shown} id={id} /> : <PageHead title="There is no such page" lead="The address may be mistyped. The navigation lists the pages of the console." />}</Guarded>
    </Shell>
  );
}

/** Guarded shows its content, or that it failed. The navigation stays usable. */
function Guarded({ children }: { children: ComponentChildren }) {
  const [failed, reset] = useErrorBoundary();
  return failed ? <Problem error={errorOf(failed)} retry={reset} /> : <section class="page">{children}</section>;
}
