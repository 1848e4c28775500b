// What a project or an embeddable without entries shows instead of figures.
import type { ComponentChildren } from "preact";
import { useNews } from "../api.ts";
import { useEmbeddables } from "../names.ts";
import { address } from "../router.ts";
import { Empty, Loading, Problem } from "./state.tsx";

/** FirstEntry says how the first entry comes, and waits for it: it calls wake after each change of the project. */
export function FirstEntry({ project, embeddable, wake }: { project: string; embeddable?: string | undefined; wake: () => void }) {
  const { state, value } = useEmbeddables(project);
  if (embeddable && state === "loading" && !value) return <Loading what="the embeddable" rows={2} />;
  if (embeddable && value && !value.some((one) => one.embeddable_id === embeddable)) {
    return (
      <Empty title="There is no embeddable with this id">
        <p>
          The id may be mistyped. It has neither a definition nor an entry. <a href={address(project, "embeddables")}>All embeddables</a>
        </p>
      </Empty>
    );
  }
  return (
    <Empty title={embeddable ? "This embeddable has no entries yet" : "This project has no entries yet"}>
      <p>
        An entry is stored each time a visitor goes through a form or quiz of yours. <a href={address(project, "connect")}>Send the first entry</a>: one command is enough.
      </p>
      <Awake project={project} wake={wake}>
        <p class="muted" role="status">
          <span class="spinner" aria-hidden="true" /> This page waits for it, and shows it by itself.
        </p>
      </Awake>
    </Empty>
  );
}

/** Awake calls wake after each change of the project. It shows its content, or why it cannot follow the changes. */
export function Awake({ project, wake, children }: { project: string; wake: () => void; children?: ComponentChildren }) {
  const { live } = useNews(project, wake);
  return live instanceof Error ? <Problem error={live} retry={() => location.reload()} /> : <>{children}</>;
}
