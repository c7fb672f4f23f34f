/** Texts in any kind of quotes, in order. */
export function quotedTexts(question: string): string[] {
  const quotes = /"([^"]+)"|`([^`]+)`|“([^”]+)”|(?<![\p{L}\p{N}])'([^']+)'(?![\p{L}\p{N}])/gu;
  return [...question.matchAll(quotes)].map((match) => match.slice(1).find(Boolean) ?? '');
}

/** What looks like the name of a file: it has an ending or a folder, or is a usual name without one. */
export function fileNames(question: string): string[] {
  const usual = /^(?:README|LICENSE|LICENCE|CHANGELOG|CONTRIBUTING|Makefile|Dockerfile|NOTICE)$/;
  const ending = /^[^\s*]*[\p{L}\p{N}_-]\.[A-Za-z][A-Za-z0-9]{0,9}$|^\.[a-z][\w.-]+$/u;
  return question
    .split(/[\s"'`“”,;()<>]+/u)
    .map((word) => word.replace(/[.:!?]+$/, ''))
    .filter(
      (word) => ending.test(word) || usual.test(word) || /^[\w@.-]*(?:\/[\w@.-]+)+$/.test(word),
    );
}

const FOLDER_PHRASES = [
  /\b(?:in|under|inside|below|of)\s+(?:the\s+)?["'`]?([\w@./-]+?)["'`]?\s+(?:folder|directory|dir)\b/i,
  /\b(?:in|under|inside|below)\s+["'`]?([\w@./-]+)["'`]?/i,
  /\b(?:list|ls)\s+(?:the\s+)?["'`]?([\w@./-]+)\b["'`]?(?!\s+files?\b)/i,
];

/** The folder a question is about: `in src`, `under the test/unit folder`, `list src`. */
export function folderName(question: string): string {
  const named = FOLDER_PHRASES.map((phrase) =>
    (phrase.exec(question)?.[1] ?? '').replace(/[.?!]+$/, '').replace(/(?<=.)\/$/, ''),
  );
  return named.find((name) => name !== '' && !NO_FOLDER.has(name.toLowerCase())) ?? '.';
}

const NO_FOLDER = new Set(
  (
    'a all an any code each every everything file files folder directory here it its my our project projects repo ' +
    'repository root that the them there these this those total which your detail details english short'
  ).split(' '),
);

/** A kind of files that a question names. */
export interface FileKind {
  readonly label: string;
  readonly pattern: string;
}

const KINDS: readonly (FileKind & { readonly words: RegExp })[] = [
  { label: 'TypeScript', pattern: '*.{ts,tsx,mts,cts}', words: /\btypescript\b|\bts files?\b/i },
  { label: 'JavaScript', pattern: '*.{js,jsx,mjs,cjs}', words: /\bjavascript\b|\bjs files?\b/i },
  { label: 'Python', pattern: '*.py', words: /\bpython\b/i },
  { label: 'Markdown', pattern: '*.{md,mdx}', words: /\bmarkdown\b|\bmd files?\b/i },
  { label: 'JSON', pattern: '*.json', words: /\bjson\b/i },
  { label: 'YAML', pattern: '*.{yml,yaml}', words: /\bya?ml\b/i },
  { label: 'Rust', pattern: '*.rs', words: /\brust\b/i },
  { label: 'Go', pattern: '*.go', words: /\bgo(?:lang)? (?:source )?files?\b|\bgolang\b/i },
  { label: 'Java', pattern: '*.java', words: /\bjava\b/i },
  { label: 'HTML', pattern: '*.{html,htm}', words: /\bhtml\b/i },
  { label: 'CSS', pattern: '*.{css,scss}', words: /\bs?css\b/i },
  { label: 'shell', pattern: '*.{sh,bash}', words: /\bshell\b|\bbash\b/i },
  { label: 'text', pattern: '*.txt', words: /\btxt\b|\btext files?\b/i },
  { label: 'image', pattern: '*.{png,jpg,jpeg,gif,svg,webp}', words: /\bimages?\b|\bpictures?\b/i },
  { label: 'test', pattern: '*.{test,spec}.*', words: /\btest files?\b|\btests\b/i },
];

export function fileKind(question: string): FileKind | undefined {
  const glob = /(?:^|[\s"'`(])((?:[\w@.-]+\/)*\*[\w*?.{},/-]*)/.exec(question)?.[1];
  if (glob !== undefined && glob !== '*') return { label: glob, pattern: glob };
  const ending = /(?:^|[\s"'`(])\.([a-z0-9]{1,10})\b["'`)]? files?\b/i.exec(question)?.[1];
  if (ending !== undefined) return { label: `.${ending}`, pattern: `*.${ending}` };
  return KINDS.find(({ words }) => words.test(question));
}

/** What a search is for: quoted text, else the telling words after the verb. */
export function searchedText(question: string): string | undefined {
  const [quoted] = quotedTexts(question);
  if (quoted !== undefined) return quoted;
  const verbs =
    /\b(?:find|search(?: for)?|grep(?: for)?|look for|where(?: is| are|'s)?|locate|occurrences? of|mentions? of|contain(?:s|ing)?|mentions?|uses?(?: of)?|how many)\b/gi;
  const last = [...question.matchAll(verbs)].at(-1);
  const rest = last ? question.slice(last.index + last[0].length) : question;
  const words = rest
    .split(/[^\p{L}\p{N}_$@./-]+/u)
    .map((word) => word.replace(/^[./-]+|[./-]+$/g, ''));
  const telling = words.filter((word) => word !== '' && !STOP_WORDS.has(word.toLowerCase()));
  const found = telling.find((word) => /[a-z][A-Z]|[_$]|\d|^[A-Z]{2,}/.test(word)) ?? telling[0];
  return found?.replace(/^([A-Z]{2,})s$/, '$1');
}

const STOP_WORDS = new Set(
  (
    'a all an and any are appear appears called can code contain containing contains declared defined do does ' +
    'each every everything file files find folder for from function class here i in into is it its located ' +
    'many me mention mentioned mentions my named occur occurrences occurs of on or our please project repo ' +
    'repository search something text that the there these this times to us use used uses we what where ' +
    'which with word you your'
  ).split(' '),
);
