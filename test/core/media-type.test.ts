import { expect, test } from 'vitest';
import { detectMediaType } from '../../src/core/text/text.js';

test.each([
  ['image/png', '89504e470d0a1a0a0000000d'],
  ['image/jpeg', 'ffd8ffe000104a464946'],
  ['image/gif', '474946383961'],
  ['image/gif', '474946383761ff'],
  ['image/webp', '524946462400000057454250565038'],
  ['application/pdf', '255044462d312e37'],
  [null, '524946462400000057415645'],
  [null, '474946383861'],
  [null, '89504e47'],
  [null, '3c73766720786d6c6e733d22'],
  [null, ''],
])('detects %s by the bytes %s', (expected, hex) => {
  expect(detectMediaType(Uint8Array.from(Buffer.from(hex, 'hex')))).toBe(expected);
});
