/** A part of a template: literal text, or the name of an argument. */
export type TemplatePart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'argument'; readonly name: string; readonly at: number };

const NAME = /[ \t]*([A-Za-z_]\w*)[ \t]*\}\}/y;
const SAMPLE = 30;

/**
 * Splits a template at its placeholders, `{{name}}`, with optional blanks inside the braces.
 *
 * `{{{{` stands for two opening braces. Single braces, and closing ones anywhere else, are plain
 * text, so `{"a": {{a}}}` needs no escape. A run of opening braces is read from the left: first
 * every four as `{{`, then a single one as text, then two as the beginning of a placeholder.
 *
 * Throws an `Error` if two braces do not begin a placeholder.
 */
export function parsePlaceholders(template: string): TemplatePart[] {
  const parts: TemplatePart[] = [];
  const braces = /\{{2,}/g;
  let read = 0;
  for (let run = braces.exec(template); run; run = braces.exec(template)) {
    const { index } = run;
    const { length } = run[0];
    const rest = length % 4;
    const literal = '{{'.repeat((length - rest) / 4) + (rest % 2 === 1 ? '{' : '');
    parts.push({ type: 'text', text: template.slice(read, index) + literal });
    read = index + length;
    if (rest < 2) continue;
    NAME.lastIndex = read;
    const found = NAME.exec(template);
    if (found === null) throw new Error(describeFault(template, read - 2));
    parts.push({ type: 'argument', name: found[1] ?? '', at: read - 2 });
    read += found[0].length;
  }
  parts.push({ type: 'text', text: template.slice(read) });
  return parts.filter((part) => part.type === 'argument' || part.text !== '');
}

function describeFault(template: string, at: number): string {
  const sample = JSON.stringify(template.slice(at, at + SAMPLE));
  return (
    `at position ${at}, ${sample} does not begin a placeholder; write {{name}}, ` +
    'or {{{{ for two braces as text'
  );
}
