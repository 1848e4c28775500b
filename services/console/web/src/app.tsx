// Chooses what the window shows: the sign-in, or the shell with a page in it. The script of the page that is shown comes
// first, the scripts of the other pages after it.
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { SignIn } from "./pages/signin.tsx";
import { here, type Page } from "./router.ts";
import { session } from "./session.ts";
import { PageHead } from "./ui/parts.tsx";
import { Shell } from "./ui/shell.tsx";
import { Loading, Problem } from "./ui/state.tsx";

type View = ComponentType<{ project: string; id: string }>;

const views: Record<Page, { list: () => Promise<View>; one?: () => Promise<View> }> = {
  overview: { list: async () => (await import("./pages/overview.tsx")).Overview },
  entries: { list: async () => (await import("./pages/entries.tsx")).Entries, one: async () => (await import("./pages/entry.tsx")).EntryPage },
  funnel: { list: async () => (await import("./pages/funnel.tsx")).Funnel, one: async () => (await import("./pages/funnel.tsx")).Funnel },
  embeddables: { list: async () => (await import("./pages/embeddables.tsx")).Embeddables, one: async () => (await import("./pages/embeddable.tsx")).EmbeddablePage },
  experiments: { list: async () => (await import("./pages/experiments.tsx")).Experiments, one: async () => (await import("./pages/experiment.tsx")).ExperimentPage },
  connect: { list: async () => (await import("./pages/connect.tsx")).Connect },
};

/** App is the whole console. */
export function App() {
  const current = session.value;
  const place = here.value;
  if (!current || (place.project !== "" && place.project !== current.project)) return <SignIn project={place.project} />;
  const page = place.page;
  const load = page && (place.id ? views[page].one : views[page].list);
  return (
    <Shell project={current.project} page={page}>
      {load ? <Lazy key={`${page} ${place.id ? "one" : "list"}`} load={load} project={current.project} id={place.id} /> : <NotFound />}
    </Shell>
  );
}

function NotFound() {
  return (
    <section class="page">
      <PageHead title="There is no such page" lead="The address may be mistyped. The navigation lists the pages of the console." />
    </section>
  );
}

function Lazy({ load, project, id }: { load: () => Promise<View>; project: string; id: string }) {
  const [view, setView] = useState<{ View?: View; error?: Error }>({});
  useEffect(() => {
    let wanted = true;
    setView({});
    load().then(
      (View) => {
        if (wanted) setView({ View });
        fetchTheRest();
      },
      (error: unknown) => wanted && setView({ error: error instanceof Error ? error : new Error(String(error)) }),
    );
    return () => {
      wanted = false;
    };
  }, [load]);
  if (view.View) {
    return (
      <Guarded key={id}>
        <view.View project={project} id={id} />
      </Guarded>
    );
  }
  // The browser remembers that a script could not be loaded. Only a fresh page asks for it again.
  if (view.error) return <Problem error={view.error} retry={() => location.reload()} />;
  return <Loading what="the page" />;
}

/** Guarded shows its content, or that it failed. The navigation stays usable. */
function Guarded({ children }: { children: ComponentChildren }) {
  const [failed, reset] = useErrorBoundary();
  if (failed) return <Problem error={failed instanceof Error ? failed : new Error(String(failed))} retry={reset} />;
  return <>{children}</>;
}

let fetched = false;

/** fetchTheRest fetches the scripts of all other pages, so that they open at once, and also without a network. */
function fetchTheRest(): void {
  if (fetched) return;
  fetched = true;
  setTimeout(() => {
    // A script that cannot be loaded matters when its page is opened.
    for (const { list, one } of Object.values(views)) void Promise.allSettled([list(), one?.()]);
  }, 1000);
}
