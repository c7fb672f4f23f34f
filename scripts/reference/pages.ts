import { type Declaration, declarationsOf } from './declarations.js';

/** The kinds of exports in the order of a page, with their headings. */
const SECTIONS: readonly (readonly [Declaration['kind'], string])[] = [
  ['function', 'Functions'],
  ['constant', 'Constants'],
  ['class', 'Classes'],
  ['type', 'Types'],
];

/**
 * Returns the reference page of an entry point, as Markdown, from the doc comments of its declaration
 * file. `name`: what users import, such as `perdure/tools`.
 */
export function referencePage(name: string, file: string): string {
  const exported = declarationsOf(file).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const sections = SECTIONS.flatMap(([kind, heading]) => {
    const found = exported.filter((declaration) => declaration.kind === kind);
    if (found.length === 0) return [];
    const links = found.map((each) => `[${each.name}](#${each.name.toLowerCase()})`).join(' · ');
    return [`## ${heading}`, links, ...found.flatMap(entryOf)];
  });
  const intro = `Everything that \`import … from '${name}'\` offers. This page is generated from the doc comments: \`npm run reference\`.`;
  return `${[`# ${name}`, intro, ...sections].join('\n\n')}\n`;
}

function entryOf({ name, kind, comment, heads, members }: Declaration): readonly string[] {
  const { text, examples } = readComment(comment);
  // The members below say what an interface is.
  const isPlain = members.length > 0 && !heads.some((head) => /<| extends /.test(head));
  return [
    `### ${name}`,
    ...(text === '' ? [] : [text]),
    ...(isPlain ? [] : [fenced(heads.map((head) => declared(head, kind)).join('\n'))]),
    ...(members.length === 0 ? [] : [members.map(memberLine).join('\n')]),
    ...examples.map((example) => `Example:\n\n${fenced(example)}`),
  ];
}

function declared(head: string, kind: Declaration['kind']): string {
  return kind === 'constant' ? `const ${head.replace(/^const /, '')}` : head;
}

function memberLine({ name, comment }: Declaration['members'][number]): string {
  const { text } = readComment(comment);
  const code = `\`${name.replace(/^readonly /, '')}\``;
  return text === '' ? `- ${code}` : `- ${code}: ${text.replaceAll(/\s+/g, ' ')}`;
}

function fenced(code: string): string {
  return `\`\`\`typescript\n${code}\n\`\`\``;
}

/** Splits a doc comment into its text and its examples. */
function readComment(comment: string): {
  readonly text: string;
  readonly examples: readonly string[];
} {
  const plain = comment
    .replace(/^\/\*\*/, '')
    .replace(/\*\/[\s\S]*$/, '')
    .replaceAll(/^[ \t]*\*? ?/gm, '')
    .replaceAll(/\{@link (\w+)\}/g, '`$1`');
  const [text = '', ...examples] = plain.split(/^@example\b/m);
  return {
    text: text.trim(),
    examples: examples.map((example) => example.replaceAll(/^```\w*$/gm, '').trim()),
  };
}
