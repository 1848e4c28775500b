// The answers of one entry, each with the title of its question.
import type { Answers } from "../answers.ts";
import { useAsked } from "../names.ts";
import { QuestionName } from "./parts.tsx";
import { Value } from "./value.tsx";

interface Props {
  project: string;
  /** The id of the embeddable that asked. */
  embeddable: string;
  answers: Answers;
  /** How many answers are drawn. */
  most: number;
}

/** AnswerList lists the first answers of an entry. A question that the definition does not have is shown by its key. */
export function AnswerList({ project, embeddable, answers, most }: Props) {
  const shown = [...answers].slice(0, most);
  const { asked, texts } = useAsked(project, embeddable, shown.map(([key]) => key));
  return (
    <dl class="answers">
      {shown.map(([key, json]) => (
        <div key={key}>
          <dt><QuestionName title={asked.get(key)?.title} name={key} /></dt>
          <dd><Value json={json} texts={texts.get(key)} /></dd>
        </div>
      ))}
    </dl>
  );
}
