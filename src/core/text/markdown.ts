import { withoutTail } from './whole-text.js';

/** Maximum bytes of a summary as JSON. Temporal accepts 400. */
const SUMMARY_BYTES = 380;

/**
 * Returns Markdown that shows exactly this text: nothing in it is a link, an image, HTML, code,
 * emphasis, or the end of a table cell. For places that always render Markdown.
 */
export function escapeMarkdown(text: string): string {
  return text
    .trimStart()
    .replaceAll(/[|<>[\]()`\\*_~#!&]/g, '\\$&')
    .replace(/^(\d*)(?=[-+=.)])/, '$1\\');
}

/**
 * Returns a line that reads almost the same as plain text and as Markdown: only links, images,
 * HTML, code, headings, lists, and quotations are escaped. For places that some pages render as
 * Markdown and others as plain text.
 */
export function inertMarkdown(line: string): string {
  return (
    line
      .trimStart()
      // A backslash before an escaped character would be its escape, so it is escaped as well.
      .replaceAll(/(?<!\\)(\\*)(`|<(?=\S)|~(?=~)|\](?=[([:])|&(?=#?\w+;))/g, '$1$1\\$2')
      .replace(/^(\d*)(?=[-+.)](?:\s|$))|^(?=[#>=*_-]+(?:\s|$)|>)/, '$1\\')
  );
}

/**
 * Returns the summary of a workflow, which Temporal's UI renders as Markdown, cut to its maximum
 * size.
 */
export function workflowSummary(text: string): string {
  return cutSummary(escapeMarkdown(text));
}

/**
 * Returns the summary of an activity or a timer, which Temporal's UI shows as text, cut to its
 * maximum size.
 */
export function eventSummary(text: string): string {
  return cutSummary(inertMarkdown(text));
}

/** Cuts a summary: a longer one would fail the workflow task again and again. */
function cutSummary(text: string): string {
  let bytes = 0;
  let short = '';
  for (const character of text) {
    bytes += bytesIn(character);
    // A trailing backslash would escape what follows.
    if (bytes > SUMMARY_BYTES) return `${withoutTail(short, /\\/)}…`;
    short += character;
  }
  return text;
}

/** Bytes of a character in JSON. */
function bytesIn(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x80) return character === '"' || character === '\\' ? 2 : 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}
