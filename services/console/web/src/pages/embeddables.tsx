import { nameOf, useEmbeddables } from "../api.ts";
import { address } from "../router.ts";
import { PageHead, Text } from "../ui/parts.tsx";
import { Empty, Loaded } from "../ui/state.tsx";
import "../style/embeddable.css";

/** Embeddables lists the embeddables of a project. */
export function Embeddables({ project }: { project: string }) {
  const load = useEmbeddables(project);
  return (
    <section class="page">
      <PageHead title="Embeddables" lead="The flows of this project. Open one to see and compare its versions." />
      <Loaded load={load} what="embeddables" rows={4}>
        {(embeddables) =>
          embeddables.length === 0 ? (
            <Empty title="This project has no embeddables yet" />
          ) : (
            <div class="card">
              <div class="scroll">
                <table>
                  <thead>
                    <tr>
                      <th scope="col">Title</th>
                      <th scope="col">
                        <span class="hidden">Links</span>
                      </th>
                      <th scope="col">Id</th>
                      <th scope="col">Group</th>
                    </tr>
                  </thead>
                  <tbody>
                    {embeddables.map((e) => (
                      <tr key={e.embeddable_id}>
                        <td class="wide wrap">
                          <a href={address(project, "embeddables", e.embeddable_id)}>
                            <Text>{nameOf(e)}</Text>
                          </a>
                        </td>
                        <td class="links">
                          <a href={address(project, "funnel", e.embeddable_id)}>Funnel</a>{" "}
                          <a href={address(project, "entries", "", { embeddable: e.embeddable_id })}>Entries</a>
                        </td>
                        <td class="wrap">
                          <code>
                            <Text>{e.embeddable_id}</Text>
                          </code>
                        </td>
                        <td class="wrap">
                          <Text>{e.group_id}</Text>
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            </div>
          )
        }
      </Loaded>
    </section>
  );
}
