import { utf8ToBytes } from '@noble/hashes/utils.js';
import type { Artefact } from '../transcript/messages.js';
import { formatBytes } from '../text/summaries.js';

/** Lines of a list; what a model reads at once. */
const LISTED = 100;

/** What the model reads of an artefact that a tool has made. `wanted`: the name that the tool gave it. */
export function artefactText(artefact: Artefact, wanted: string, head: string): string {
  const { name, kind, blob, summary } = artefact;
  const renamed =
    name === wanted ? '' : ` ("${wanted}" is another value, made before, and stays what it is)`;
  const whole = utf8ToBytes(head).length >= blob.bytes;
  return [
    `[artefact "${name}"${renamed}: ${kind}, ${blob.bytes} bytes. It is kept whole: hand it to a ` +
      `tool by its name, or read it with read_result({"ref":"${blob.sha256}","offset":0})]`,
    ...(summary === undefined ? [] : [summary]),
    whole ? 'It is:' : 'It begins:',
    head,
  ].join('\n');
}

/** All artefacts of a run for its model, newest first. */
export function artefactList(artefacts: readonly Artefact[]): string {
  if (artefacts.length === 0) return 'There are no artefacts yet.';
  const shown = artefacts.slice(-LISTED).toReversed();
  const left = artefacts.length - shown.length;
  return [
    `${artefacts.length} artefact${artefacts.length === 1 ? '' : 's'}, newest first:`,
    ...shown.map((artefact) => `- ${line(artefact)}`),
    ...(left === 0 ? [] : [`and ${left} older`]),
  ].join('\n');
}

function line({ name, kind, blob, tool, call, summary }: Artefact): string {
  const what = `${name}: ${kind}, ${formatBytes(blob.bytes)}, made by ${tool} (${call})`;
  return summary === undefined ? what : `${what}: ${summary}`;
}
