/** Bytes of JSON that Temporal keeps of a summary are 400. */
const SUMMARY_BYTES = 380;

/**
 * Text as Markdown that shows this very text: nothing in it is a link, an image, HTML, code, emphasis, or
 * a break out of a table. For places that are always read as Markdown.
 */
export function escapeMarkdown(text: string): string {
  return text
    .trimStart()
    .replaceAll(/[|<>[\]()`\\*_~#!&]/g, '\\$&')
    .replace(/^(\d*)(?=[-+=.)])/, '$1\\');
}

/**
 * A line that reads the same as plain text and as Markdown, as far as it can: only what Markdown would take
 * for a link, an image, HTML, code, a heading, a list, or a quotation is escaped. For places that some
 * pages read as Markdown and others as it is.
 */
export function inertMarkdown(line: string): string {
  return (
    line
      .trimStart()
      // A backslash before what is escaped would be taken for its escape, so it is escaped as well.
      .replaceAll(/(\\*)(`|<(?=\S)|~(?=~)|\](?=[([:])|&(?=#?\w+;))/g, '$1$1\\$2')
      .replace(/^(\d*)(?=[-+.)](?:\s|$))|^(?=[#>=*_-]+(?:\s|$)|>)/, '$1\\')
  );
}

/** The summary of a workflow, which Temporal's UI reads as Markdown: the very text, as long as it may be. */
export function workflowSummary(text: string): string {
  return fitting(escapeMarkdown(text));
}

/** The summary of an activity or a timer, which Temporal's UI shows as it is, as long as it may be. */
export function eventSummary(text: string): string {
  return fitting(inertMarkdown(text));
}

/** A summary that is too long would fail the workflow task, again and again. */
function fitting(text: string): string {
  let bytes = 0;
  let kept = '';
  for (const character of text) {
    bytes += bytesIn(character);
    // Half an escape would escape what follows.
    if (bytes > SUMMARY_BYTES) return `${kept.replace(/\\+$/, '')}…`;
    kept += character;
  }
  return text;
}

/** Of a character in JSON. */
function bytesIn(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x80) return character === '"' || character === '\\' ? 2 : 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}
