// What a project without entries shows instead of figures.
import { useNews } from "../api.ts";
import { address } from "../router.ts";

/** FirstEntry says how the first entry comes, and waits for it: it calls wake after each change of the project. */
export function FirstEntry({ project, embeddable, wake }: { project: string; embeddable?: string | undefined; wake: () => void }) {
  return (
    <div class="notice" data-state="empty">
      <Awake project={project} wake={wake} />
      <h2>{embeddable ? "This embeddable has no entries yet" : "This project has no entries yet"}</h2>
      <p>
        An entry is stored each time a visitor goes through a form or quiz of yours. <a href={address(project, "connect")}>Send the first entry</a>: one command is enough.
      </p>
      <p class="muted" role="status">
        <span class="spinner" aria-hidden="true" /> This page waits for it, and shows it by itself.
      </p>
    </div>
  );
}

/** Awake calls wake after each change of the project. */
export function Awake({ project, wake }: { project: string; wake: () => void }) {
  useNews(project, wake);
  return null;
}
