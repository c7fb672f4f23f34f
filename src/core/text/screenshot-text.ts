import { formatBytes } from './summaries.js';

const SHOWN = /^\[screenshot: [^\]\n]*\]\n?/;

/** What stands in the transcript for a picture. `text`: what the tool says beside it. */
export function screenshotText(
  { mediaType, bytes }: { readonly mediaType: string; readonly bytes: number },
  text: string,
): string {
  const shown = `[screenshot: ${mediaType}, ${formatBytes(bytes)}]`;
  return text === '' ? shown : `${shown}\n${text}`;
}

/** What the tool said beside the picture. */
export function screenshotNote(text: string): string {
  return text.replace(SHOWN, '');
}
