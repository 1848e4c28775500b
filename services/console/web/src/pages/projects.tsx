import type { OwnProject } from "@lectern/client";
import { useEffect } from "preact/hooks";
import { type Load, useLoad } from "../load.ts";
import { address, go } from "../router.ts";
import { signOut } from "../session.ts";
import { Text } from "../ui/parts.tsx";
import { Identity, Loaded } from "../ui/state.tsx";

/** useProjects reads the projects that the visitor may read. */
export const useProjects = (): Load<OwnProject[]> => useLoad(({ client, signal }) => client.projects({ signal }), ["projects"]);

/** ProjectList links to the projects that the visitor may read. Without one it says how to get one. */
export function ProjectList({ load }: { load: Load<OwnProject[]> }) {
  return (
    <Loaded load={load} what="your projects">
      {(all) =>
        all.length === 0 ? (
          <div class="page" data-state="no-project">
            <p>You are signed in, but no project lets you read it. Give these two lines to the administrator of Lectern:</p>
            <Identity />
          </div>
        ) : (
          <ul class="rows">
            {all.map(({ projectId, title, scopes }) => (
              <li key={projectId} data-project={projectId}>
                <a href={address(projectId, "overview")}>
                  <Text>{title || projectId}</Text>
                </a>
                <bdi class="muted small">{projectId}</bdi>
                <span class="muted small">{scopes.join(", ")}</span>
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  );
}

/** Projects lets a visitor who signed in with the provider choose a project. It opens the only one. */
export function Projects() {
  const load = useProjects();
  const only = load.value?.length === 1 ? load.value[0] : undefined;
  useEffect(() => {
    if (only) go(address(only.projectId, "overview"), { replace: true });
  }, [only]);
  return (
    <main class="signin" tabIndex={-1}>
      <section class="box">
        <h1>Your projects</h1>
        <ProjectList load={load} />
        <button type="button" class="quiet" onClick={signOut}>Sign out</button>
      </section>
    </main>
  );
}
