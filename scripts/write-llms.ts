// Writes llms.txt, the index of the pages for language models, from docs/README.md: `npm run llms`. With `full`, it
// writes llms-full.txt, too, the text of all guides; that file is in the package and on the site, and not in the repository.
import { readFileSync, writeFileSync } from 'node:fs';
import { posix } from 'node:path';

const root = new URL('../', import.meta.url).pathname;
const read = (path: string): string => readFileSync(root + path, 'utf8');
const INDEX = 'docs/README.md';
/** Pages that tell a program nothing about the use of the product. */
const LEFT_OUT = new Set(['CHANGELOG.md', 'docs/acceptance.md']);

/** Returns the text of llms.txt, in the form of llmstxt.org. */
export function llmsIndex(): string {
  const [, intro = ''] = read('README.md').split('\n\n');
  const [, ...sections] = read(INDEX).split(/^(?=## )/m);
  const lines = sections.join('').replaceAll(/\]\(([^)\s]+)\)/g, (_, link: string) => {
    return `](${posix.join('docs', link)})`;
  });
  const skill =
    '- [Skill](skills/perdure/SKILL.md): rules and blocks that compile, for coding agents.';
  return `# perdure\n\n> ${intro.replaceAll('\n', ' ')}\n\n${lines.trim()}\n\n## Optional\n\n${skill}\n`;
}

/** Returns the text of llms-full.txt: README.md, and each page of the index that is not generated and not about decisions. */
export function llmsFull(): string {
  const links = [...read(INDEX).matchAll(/\]\(([^)\s]+\.md)\)/g)].map(([, link = '']) =>
    posix.join('docs', link),
  );
  const pages = links.filter(
    (page) => !/\/(?:reference|decisions)\//.test(page) && !LEFT_OUT.has(page),
  );
  const texts = ['README.md', ...pages].map((page) => `<!-- ${page} -->\n\n${read(page).trim()}\n`);
  return texts.join('\n');
}

if (process.argv[1] === import.meta.filename) {
  writeFileSync(`${root}llms.txt`, llmsIndex());
  if (process.argv.includes('full')) writeFileSync(`${root}llms-full.txt`, llmsFull());
}
