import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { posix } from 'node:path';
import { expect, test } from 'vitest';

const read = (path: string): string =>
  readFileSync(new URL(`../${path}`, import.meta.url), 'utf8').replaceAll(
    /^```[\s\S]*?^```$/gm,
    '',
  );

/** The pages and sections to which a page links, relative to the repository, such as `docs/a.md#b`. */
function linksOf(page: string): readonly string[] {
  return [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) => {
    const [path = '', anchor] = link.split('#');
    if (/^\w+:/.test(link) || !path.endsWith('.md')) return [];
    const target = posix.join(posix.dirname(page), path);
    return existsSync(new URL(`../${target}`, import.meta.url))
      ? [anchor === undefined ? target : `${target}#${anchor}`]
      : [];
  });
}

/** The numbered questions with the first link of the answer of each. */
const QUESTIONS = [...read('docs/faq.md').matchAll(/^\d+\. \*\*(.+?)\*\*.*?\]\(([^)\s]+)\)/gm)].map(
  ([, question = '', link = '']) => [question, posix.join('docs', link)] as const,
);

/** Pages that a reader reaches from README.md with one click. */
const NEAR = new Set(linksOf('README.md').map((link) => link.split('#')[0] ?? ''));

test('there are 33 questions of a stranger', () => {
  expect(QUESTIONS).toHaveLength(33);
});

test.each(QUESTIONS)('%s is answered within two clicks from README.md: %s', (_, answer) => {
  const [page = ''] = answer.split('#');
  const isOneClick = linksOf('README.md').includes(answer);
  const isTwoClicks = [...NEAR].some((near) => linksOf(near).includes(answer));
  expect(isOneClick || isTwoClicks || NEAR.has(page)).toBe(true);
});

test('the index lists each page of docs/', () => {
  const index = new Set(linksOf('docs/README.md'));
  const folder = new URL('../docs/', import.meta.url);
  const pages = ['', 'reference/'].flatMap((below) =>
    readdirSync(new URL(below, folder))
      .filter((name) => name.endsWith('.md') && name !== 'README.md')
      .map((name) => `docs/${below}${name}`),
  );
  expect(pages.filter((page) => !index.has(page))).toEqual([]);
  expect(NEAR.has('docs/README.md')).toBe(true);
});
