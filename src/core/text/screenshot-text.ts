import { formatBytes } from './summaries.js';

const SHOWN = /^\[screenshot: [^\]\n]*\]\n?/;

/** Returns the text of a screenshot in the transcript. `text`: the tool's own text. */
export function screenshotText(
  { mediaType, bytes }: { readonly mediaType: string; readonly bytes: number },
  text: string,
): string {
  const shown = `[screenshot: ${mediaType}, ${formatBytes(bytes)}]`;
  return text === '' ? shown : `${shown}\n${text}`;
}

/** Returns the tool's own text of a screenshot. */
export function screenshotNote(text: string): string {
  return text.replace(SHOWN, '');
}
