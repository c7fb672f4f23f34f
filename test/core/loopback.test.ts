import { expect, test } from 'vitest';
import { isLoopback } from '../../src/core/text/text.js';

test.each(['localhost', 'LOCALHOST', '127.0.0.1', '127.1.2.3', '::1', '[::1]'])(
  '%s is this machine',
  (host) => expect(isLoopback(host)).toBe(true),
);

test.each(['', '0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example.com', 'localhost.example.com'])(
  '%j may be another machine',
  (host) => expect(isLoopback(host)).toBe(false),
);
