import { readFileSync, readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { llmsFull, llmsIndex } from '../../scripts/write-llms.js';
import { EXIT } from '../../src/cli/context.js';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');

test('llms.txt is the index of the pages; otherwise: npm run llms', () => {
  expect(read('llms.txt')).toBe(llmsIndex());
});

test('llms-full.txt has each guide', () => {
  const full = llmsFull();
  const guides = readdirSync(new URL('docs/', root)).filter(
    (name) => name.endsWith('.md') && name !== 'README.md' && name !== 'acceptance.md',
  );
  expect(guides.filter((name) => !full.includes(`<!-- docs/${name} -->`))).toEqual([]);
});

test('the skill names every exit code, and pages that exist', () => {
  const skill = read('skills/perdure/SKILL.md');
  const [line = ''] = /^Exit codes: .*$/m.exec(skill) ?? [];
  expect([...line.matchAll(/\d+/g)].map(([code]) => Number(code))).toEqual(Object.values(EXIT));
  const pages = [...skill.matchAll(/`([\w-]+\.md)`/g)].map(([, page]) => page);
  expect(pages.length).toBeGreaterThan(5);
  expect(pages.filter((page) => !readdirSync(new URL('docs/', root)).includes(page ?? ''))).toEqual(
    [],
  );
});
