import type { BlobStore } from '../../storage/blob-store.js';
import type { ToolSuccess } from '../../core/calls/call-results.js';
import type { ToolDefinition } from '../../core/definition/definition.js';
import { screenshotText } from '../../core/text/screenshot-text.js';
import { parseJson, type Json } from '../../core/json.js';
import type { ArtifactMade } from '../../core/transcript/messages.js';
import { isArtifact, standardName } from '../../tools/built-in/artifact.js';
import { artifactValue } from '../../tools/artifact-value.js';
import { redact } from '../../secrets/redact.js';
import { cutText } from '../../tools/result/cut.js';
import { normalizeResult } from '../../tools/result/normalize.js';
import { isScreenshot, type Screenshot } from '../../tools/built-in/screenshot.js';
import { ToolError } from '../../tools/tool-error.js';
import { wellFormed } from '../../tools/utf8.js';
import { keepText, patiently } from '../offload-text.js';

/** What a tool gave, written down and not yet kept. */
export interface WrittenResult {
  readonly content: string;
  readonly isText: boolean;
  readonly artifact?: Omit<ArtifactMade, 'blob'> & { readonly head: string };
  readonly picture?: Pick<Screenshot, 'base64' | 'mediaType' | 'bytes'>;
}

/**
 * Writes down what a tool gave; streams are read here. What an artifact cannot keep fails a read, as
 * an error the model hears; a tool that has changed the world has its result told as it is.
 */
export async function writeResult(
  given: unknown,
  tool: Pick<ToolDefinition, 'name' | 'effect'> & {
    readonly signal: AbortSignal;
    readonly warn: (message: string) => void;
  },
): Promise<WrittenResult> {
  const { signal } = tool;
  if (isScreenshot(given))
    return { content: wellFormed(redact(given.text)), isText: true, picture: given };
  if (!isArtifact(given)) {
    const content = await normalizeResult(given, { signal });
    return { content, isText: typeof given === 'string' };
  }
  const { value, name = standardName(tool.name), summary } = given;
  const written = await artifactValue(value, { signal });
  if ('problem' in written) {
    const message = `${tool.name}: ${written.problem}`;
    if (tool.effect === 'read') throw new ToolError(message);
    tool.warn(message);
    const content = await normalizeResult(value, { signal });
    return { content: `[no artifact: ${written.problem}]\n${content}`, isText: true };
  }
  const { content, isText, kind, head } = written;
  const artifact = {
    name,
    kind,
    ...(isText && { text: true as const }),
    ...(summary !== undefined && { summary }),
    head,
  };
  return { content, isText, artifact };
}

/** Keeps what was written before it is reported: a result that cannot be kept is not there. */
export async function keepResult(
  { ends }: Pick<ToolDefinition, 'ends'>,
  { content, isText, artifact: made, picture }: WrittenResult,
  blobs: BlobStore,
): Promise<ToolSuccess> {
  if (picture !== undefined) return await withPicture(content, { picture, blobs });
  if (made === undefined) return await ordinary(content, { typed: ends && !isText, blobs });
  const { head, ...facts } = made;
  const kept = await patiently(() => blobs.put(content));
  if ('fault' in kept) {
    // What the tool did is done; only its value is lost to later calls.
    return { text: `[no artifact]\n${cutText(content, { lost: kept.fault })}` };
  }
  const artifact = { ...facts, blob: kept.done };
  // What ends a turn is its answer, and remains an artifact for the next one.
  const told = ends ? await ordinary(content, { typed: !isText, blobs }) : { text: head };
  return { ...told, artifact };
}

async function ordinary(
  content: string,
  { typed, blobs }: { typed: boolean | undefined; blobs: BlobStore },
): Promise<ToolSuccess> {
  const { text, blob } = await keepText(content, blobs);
  // Only where it becomes the run's output: everything else is recorded once, as text.
  const output = typed && !blob ? parseJson(content) : undefined;
  return {
    text,
    ...(blob && { blob }),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- JSON.parse gives JSON
    ...(output !== undefined && { output: output as Json }),
  };
}

/** The action has been done; where its picture cannot be kept, that is what the model is told. */
async function withPicture(
  note: string,
  { picture, blobs }: { picture: NonNullable<WrittenResult['picture']>; blobs: BlobStore },
): Promise<ToolSuccess> {
  const { base64, mediaType } = picture;
  const kept = await patiently(() => blobs.put(base64));
  if ('fault' in kept) {
    const lost = `[the action was done; its screenshot could not be kept: ${kept.fault}]`;
    return await ordinary(`${lost}\n${note}`, { typed: false, blobs });
  }
  const attachments = [{ type: 'image', blob: kept.done, mediaType }] as const;
  return {
    ...(await ordinary(screenshotText(picture, note), { typed: false, blobs })),
    attachments,
  };
}
