import { isObject } from '../../core/json.js';
import { firstHeading, writePlan } from './file-plans.js';
import { capital, place, without } from './plans.js';
import type { DemoPlan, DemoResult } from './replay.js';
import { amount, plainly, readFileText, readHits, readListing } from './results.js';
import type { Listing } from './results.js';

const MANIFESTS = ['package.json', 'pyproject.toml', 'Cargo.toml', 'go.mod', 'pom.xml'];

/** Looks around: what is here, what it says of itself, how large it is, what is left to do. */
export function* overviewPlan(path: string, target: string | undefined): DemoPlan {
  const [top] = yield [{ tool: 'list_files', input: { path } }];
  const here = readListing(top);
  if (!here) return plainly('list_files', top);
  const telling = tellingFiles(here);
  const texts =
    telling.length === 0
      ? []
      : yield telling.map((name) => ({ tool: 'read_file', input: { path: name, limit: 200 } }));
  const [all] = yield [{ tool: 'list_files', input: { path, depth: 64, sort: 'size' } }];
  const [todo] = yield [{ tool: 'search_text', input: { query: 'TODO', path } }];
  const summary = [
    holds(path, here),
    ...texts.map((text, index) => saysOfItself(telling[index] ?? '', text)),
    extent(all),
    leftToDo(todo),
  ].join('\n');
  if (target === undefined) return summary;
  const written = yield* writePlan(target, `${summary}\n`);
  return `${written}\n\n${summary}`;
}

function tellingFiles({ names }: Listing): string[] {
  const readme = names.find((name) => /^readme(?:\.\w+)?$/i.test(baseName(name)));
  const manifest = MANIFESTS.map((wanted) => names.find((name) => baseName(name) === wanted)).find(
    Boolean,
  );
  return [readme, manifest].filter((name) => name !== undefined);
}

function baseName(name: string): string {
  return name.split('/').at(-1) ?? name;
}

function holds(path: string, { folders, files, names, isWhole }: Listing): string {
  const shown = names.slice(0, 20).join(', ');
  const rest = names.length > 20 || !isWhole ? ', and more' : '';
  const counts = `${amount(folders, 'folder')} and ${amount(files, 'file')}`;
  return `${capital(place(path))} holds ${counts}${shown === '' ? '' : `: ${shown}${rest}`}.`;
}

function saysOfItself(name: string, result: DemoResult | undefined): string {
  const file = readFileText(result);
  if (!file || file.isBinary) return `${name}: ${plainly('read_file', result)}`;
  const manifest = name.endsWith('package.json') ? parse(file.text) : undefined;
  if (isObject(manifest) && typeof manifest['name'] === 'string') {
    const { version, description } = manifest;
    const parts = [version, description].filter((part) => typeof part === 'string');
    return `${name} names the package "${manifest['name']}"${parts.map((part) => `, ${part}`).join('')}.`;
  }
  const lines = file.lines === undefined ? '' : ` (${amount(file.lines, 'line')})`;
  return `${name}${lines} begins with "${firstHeading(file.text)}".`;
}

function extent(result: DemoResult | undefined): string {
  const all = readListing(result);
  if (!all) return plainly('list_files', result);
  const total = `${amount(all.files, 'file')}${without(all)}`;
  const [largest] = all.names;
  const bytes = all.sizes.get(largest ?? '');
  const top = bytes === undefined ? '' : `; the largest is ${largest} (${amount(bytes, 'byte')})`;
  return `With the folders below: ${total}${top}.`;
}

function leftToDo(result: DemoResult | undefined): string {
  const hits = readHits(result);
  if (!hits) return plainly('search_text', result);
  if (hits.matches === 0) return `"TODO" stands in none of ${amount(hits.searched, 'text file')}.`;
  return `"TODO" stands in ${amount(hits.matches, 'line')} of ${amount(hits.files, 'file')}.`;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
