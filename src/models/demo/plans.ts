import type { DemoPlan } from './replay.js';
import { amount, plainly, readFileText, readHits, readListing } from './results.js';
import type { Hits, Listing } from './results.js';
import type { FileKind } from './words.js';

const ALL_LEVELS = 64;
const SHOWN_NAMES = 30;
const LARGEST = 5;

export function* listPlan(path: string): DemoPlan {
  const [result] = yield [{ tool: 'list_files', input: { path } }];
  const listing = readListing(result);
  if (!listing) return plainly('list_files', result);
  const names = listing.names.slice(0, SHOWN_NAMES).join(', ');
  const more = listing.names.length - SHOWN_NAMES;
  const rest = more > 0 || !listing.isWhole ? `, and more` : '';
  const counts = `${amount(listing.folders, 'folder')} and ${amount(listing.files, 'file')}`;
  return `${capital(place(path))} holds ${counts}${names === '' ? '.' : `: ${names}${rest}.`}`;
}

export function* countPlan(path: string, kind: FileKind | undefined): DemoPlan {
  if (kind) {
    const [result] = yield [{ tool: 'list_files', input: { path, pattern: kind.pattern } }];
    const found = readListing(result);
    if (!found) return plainly('list_files', result);
    const names = found.names.slice(0, 5).join(', ');
    const examples = found.names.length > 0 ? `, such as ${names}` : '';
    const files = amount(found.files, `${kind.label} file`);
    return `There ${found.files === 1 ? 'is' : 'are'} ${files} (${kind.pattern}) in ${place(path)} and the folders below it${without(found)}${examples}.`;
  }
  const [direct] = yield [{ tool: 'list_files', input: { path } }];
  const [all] = yield [{ tool: 'list_files', input: { path, depth: ALL_LEVELS } }];
  const here = readListing(direct);
  const below = readListing(all);
  if (!here) return plainly('list_files', direct);
  const first = `${capital(place(path))} itself holds ${amount(here.files, 'file')} and ${amount(here.folders, 'folder')}.`;
  if (!below) return `${first} ${plainly('list_files', all)}`;
  const total = `${amount(below.files, 'file')} in ${amount(below.folders, 'folder')}`;
  return `${first} With everything below it${without(below)}: ${total}.`;
}

export function* largestPlan(path: string, kind: FileKind | undefined): DemoPlan {
  const input = kind ? { pattern: kind.pattern } : { depth: ALL_LEVELS };
  const [result] = yield [{ tool: 'list_files', input: { path, ...input, sort: 'size' } }];
  const listing = readListing(result);
  if (!listing) return plainly('list_files', result);
  const [first, ...others] = listing.names.slice(0, LARGEST).map((name) => sized(name, listing));
  if (first === undefined) return `There are no files to compare in ${place(path)}.`;
  const next = others.length > 0 ? ` Then come ${others.join(', ')}.` : '';
  return `The largest of ${amount(listing.files, 'file')}${without(listing)} is ${first}.${next}`;
}

/** All lines of all text files: a regular expression that fits each line counts them. */
export function* allLinesPlan(path: string, kind: FileKind | undefined): DemoPlan {
  const pattern = kind ? { pattern: kind.pattern } : {};
  const [result] = yield [
    { tool: 'search_text', input: { query: '^', regex: true, path, ...pattern } },
  ];
  const hits = readHits(result);
  if (!hits) return plainly('search_text', result);
  const files = amount(hits.searched, kind ? `${kind.label} file` : 'text file');
  return `There ${hits.matches === 1 ? 'is' : 'are'} ${amount(hits.matches, 'line')} in ${files} in ${place(path)} and below.`;
}

/** Text in files, then in their names, then a look at the place that tells most. */
export function* findPlan(text: string, path: string, kind?: FileKind): DemoPlan {
  const where = { path, ...(kind && { pattern: kind.pattern }) };
  const [exact] = yield [{ tool: 'search_text', input: { query: text, ...where } }];
  const strict = readHits(exact);
  const [loose] =
    strict?.matches === 0
      ? yield [{ tool: 'search_text', input: { query: text, ...where, ignore_case: true } }]
      : [exact];
  const hits = readHits(loose);
  if (!hits) return plainly('search_text', loose);
  const [named] = /^[\w@.-]+$/.test(text)
    ? yield [{ tool: 'list_files', input: { path, pattern: `*${text}*` } }]
    : [undefined];
  const parts = [hitsText(text, { hits, isLoose: loose !== exact }), filesText(named)];
  const best = hits.shown.find((line) => isDefinition(line, text)) ?? hits.shown[0];
  const [, file, line] = /^(.+?):(\d+): /.exec(best ?? '') ?? [];
  if (file !== undefined) {
    const offset = Math.max(1, Number(line) - 2);
    const [around] = yield [{ tool: 'read_file', input: { path: file, offset, limit: 6 } }];
    const shown = readFileText(around);
    if (shown) parts.push(`Around ${file}:${line}:\n${shown.text}`);
  }
  return parts.filter((part) => part !== '').join('\n');
}

/** Whether a line of code gives a name to something, in most languages. */
function isDefinition(line: string, text: string): boolean {
  const keywords =
    /\b(?:function\*?|class|const|let|var|interface|type|enum|def|fn|func|struct|trait)\s+$/;
  const at = line.indexOf(text);
  return at > 0 && keywords.test(line.slice(0, at));
}

function hitsText(
  text: string,
  { hits, isLoose }: { readonly hits: Hits; readonly isLoose: boolean },
): string {
  const searched = `in ${amount(hits.searched, 'file')} that I searched`;
  if (hits.matches === 0) return `"${text}" does not occur ${searched}.`;
  const how = isLoose ? ' (in upper or lower case)' : '';
  const counts = `${amount(hits.matches, 'line')} of ${amount(hits.files, 'file')}`;
  return [`"${text}" stands${how} in ${counts}:`, ...hits.shown.slice(0, 10)].join('\n');
}

function filesText(named: Parameters<typeof readListing>[0]): string {
  const listing = readListing(named);
  if (!listing || listing.names.length === 0) return '';
  return `Files with that name: ${listing.names.slice(0, 10).join(', ')}.`;
}

function sized(name: string, listing: Listing): string {
  const bytes = listing.sizes.get(name);
  return bytes === undefined ? name : `${name} (${amount(bytes, 'byte')})`;
}

export function place(path: string): string {
  return path === '.' ? 'this folder' : path;
}

export function capital(text: string): string {
  return text === 'this folder' ? 'This folder' : text;
}

/** What the counts leave out must be said, or they are not true. */
export function without(listing: Listing): string {
  return listing.skipped === '' ? '' : ` (without ${listing.skipped})`;
}
