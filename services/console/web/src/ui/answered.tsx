// The answers of one entry, each with the title of its question.
import { useMemo } from "preact/hooks";
import type { Answers } from "../answers.ts";
import { useAsked } from "../names.ts";
import { Text } from "./parts.tsx";
import { Value } from "./value.tsx";

/** How much of a key or a title is drawn, in characters. */
const longestName = 200;

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
  const shown = useMemo(() => [...answers].slice(0, most), [answers, most]);
  const { asked, texts } = useAsked(project, embeddable, useMemo(() => shown.map(([key]) => key), [shown]));
  return (
    <dl class="answers">
      {shown.map(([key, json]) => {
        const title = asked.get(key)?.title;
        return (
          <div key={key}>
            <dt>{title ? <><Text most={longestName}>{title}</Text> <code><Text most={longestName}>{key}</Text></code></> : <Text most={longestName}>{key || "(no name)"}</Text>}</dt>
            <dd><Value json={json} texts={texts.get(key)} /></dd>
          </div>
        );
      })}
    </dl>
  );
}
