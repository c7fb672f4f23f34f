import { expect, test } from 'vitest';
import { toldBy } from '../../src/mcp/transport.js';

const WARNING = '(node:9331) Warning: To load an ES module, set "type": "module" in package.json.';

test.each([
  [
    `${WARNING}\n/shop.js:1\nimport x from 'y';\n^^^^^^\nSyntaxError: Cannot use import\n    at wrapSafe\n`,
    /^SyntaxError: Cannot use import\n {4}at wrapSafe/,
  ],
  ['Error: first\nTypeError [ERR_X]: second\n', /^TypeError \[ERR_X\]: second/],
  [
    `Traceback (most recent call last):\n  File "x.py"\nrequests.ConnectionError: none\n`,
    /^requests/,
  ],
  ['the key is missing\n', /^the key is missing/],
  [`Error: no key\n${'    at x\n'.repeat(1_000)}`, /^Error: no key\n/],
])('the last error of a server comes first: case %#', (text, told) => {
  expect(toldBy(text)).toMatch(told);
  expect(toldBy(text).length).toBeLessThanOrEqual(1_000);
});

test('a text without an error is told by its end', () => {
  expect(toldBy(`${'x'.repeat(2_000)}the end`)).toMatch(/^x{993}the end$/);
});
