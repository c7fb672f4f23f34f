import { listPlan } from './plans.js';
import type { DemoPlan, DemoResult } from './replay.js';
import { amount, plainly, readFileText, readListing } from './results.js';
import type { FileText } from './results.js';

const SHOWN_LINES = 8;
const SHOWN_HEADINGS = 12;

export function* readPlan(path: string): DemoPlan {
  const result = yield* readOrFind(path, {});
  if (result && !result.ok && /\bis a folder\b/.test(result.text)) return yield* listPlan(path);
  const file = readFileText(result);
  return file ? describeFile(file) : plainly('read_file', result);
}

export function* linesPlan(path: string): DemoPlan {
  const result = yield* readOrFind(path, { limit: 1 });
  const file = readFileText(result);
  if (!file) return plainly('read_file', result);
  if (file.isBinary)
    return `${file.name} is a binary file of ${amount(file.bytes, 'byte')}: it has no lines.`;
  if (file.lines === undefined) {
    return `${file.name} has ${amount(file.bytes, 'byte')}; it is too large to count its lines.`;
  }
  return `${file.name} has ${amount(file.lines, 'line')} (${amount(file.bytes, 'byte')}).`;
}

/** Writes, and reads back what was written. */
export function* writePlan(path: string, content: string): DemoPlan {
  const [written] = yield [{ tool: 'write_file', input: { path, content } }];
  if (!written?.ok) return plainly('write_file', written);
  const [read] = yield [{ tool: 'read_file', input: { path } }];
  const file = readFileText(read);
  if (!file) return `${written.text}. I could not read it back: ${plainly('read_file', read)}`;
  const isSame = file.bytes === new TextEncoder().encode(content).length;
  const check = isSame ? 'I read it back, and it is all there.' : 'Read back, it has another size.';
  return `I wrote ${amount(file.bytes, 'byte')} to ${file.name}. ${check}`;
}

/** A name without its folder is looked for; only one match is taken for the file that was meant. */
function* readOrFind(
  path: string,
  options: { readonly limit?: number },
): Generator<
  readonly {
    readonly tool: string;
    readonly input: { readonly path: string } | { readonly pattern: string };
  }[],
  DemoResult | undefined,
  readonly DemoResult[]
> {
  const [direct] = yield [{ tool: 'read_file', input: { path, ...options } }];
  if (!direct || direct.ok || /\bis a folder\b/.test(direct.text)) return direct;
  const name = path.split('/').at(-1) ?? path;
  const [found] = yield [
    { tool: 'list_files', input: { pattern: name.includes('.') ? name : `${name}*` } },
  ];
  const names = readListing(found)?.names ?? [];
  const [only] = names;
  if (names.length === 1 && only !== undefined && only !== path) {
    const [second] = yield [{ tool: 'read_file', input: { path: only, ...options } }];
    return second;
  }
  if (names.length < 2) return direct;
  return {
    ok: false,
    text: `${direct.text}. Files of that name: ${names.slice(0, 10).join(', ')}`,
  };
}

function describeFile(file: FileText): string {
  if (file.isBinary)
    return `${file.name} is a binary file of ${amount(file.bytes, 'byte')}; I do not read it.`;
  if (file.bytes === 0) return `${file.name} is empty.`;
  const lines = file.lines === undefined ? '' : ` and ${amount(file.lines, 'line')}`;
  const size = `${file.name} has ${amount(file.bytes, 'byte')}${lines}.`;
  const landmarks = landmarksOf(file);
  const marks =
    landmarks.length > 0 ? `It has: ${landmarks.slice(0, SHOWN_HEADINGS).join(' · ')}.` : '';
  const begins = file.text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(0, SHOWN_LINES)
    .map((line) => `> ${line.slice(0, 200)}`);
  return [size, marks, 'It begins:', ...begins].filter((part) => part !== '').join('\n');
}

/** Headings of a Markdown file, exported names of a program. */
function landmarksOf({ name, text }: FileText): string[] {
  const pattern = /\.(?:md|mdx)$/i.test(name)
    ? /^#{1,3} +(.+)$/gm
    : /^export (?:default )?(?:async )?(?:function\*?|class|const|interface|type) +(\w+)/gm;
  return [...text.matchAll(pattern)].map((match) => match[1]?.trim() ?? '');
}

/** The first heading, else the first line that says anything. */
export function firstHeading(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  const heading = lines.find((line) => /^#+ /.test(line)) ?? lines.find((line) => line !== '');
  return (heading ?? '').replace(/^#+ */, '').slice(0, 200);
}
