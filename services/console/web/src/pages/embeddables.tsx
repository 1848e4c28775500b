import { useEmbeddables, useLoad } from "../api.ts";
import { counts } from "../insights.ts";
import { here } from "../router.ts";
import { EmbeddableTable } from "../ui/embeddables.tsx";
import { PageHead } from "../ui/parts.tsx";
import { Empty, Loaded } from "../ui/state.tsx";

/** Embeddables lists the embeddables of a project, for their versions or for their answers. */
export function Embeddables({ project }: { project: string }) {
  const answers = here.value.page === "answers";
  const load = useEmbeddables(project);
  // Without figures the list still works: the key may lack the scope. They are read again with the list.
  const figures = useLoad(({ client, signal }) => counts(client, project, { interval: "all", by: "embeddable" }, signal), [project, load.state === "failed"]);
  return (
    <>
      {answers ? (
        <PageHead title="Answers" lead="What did visitors answer, and how many of them? Choose an embeddable." />
      ) : (
        <PageHead title="Embeddables" lead="The forms and quizzes on your website. Open one to see and compare its versions. The figures are of all time." />
      )}
      <Loaded load={load} what="embeddables" rows={4}>
        {(embeddables) =>
          embeddables.length === 0 ? (
            <Empty title="This project has no embeddables yet" />
          ) : (
            <div class="card">
              <EmbeddableTable project={project} embeddables={embeddables} counts={figures.value} page={answers ? "answers" : "embeddables"} />
            </div>
          )
        }
      </Loaded>
    </>
  );
}
