import { ServiceError } from '@temporalio/client';
import { expect, test } from 'vitest';
import { NoServerError } from '../../src/core/errors.js';
import { listError } from '../../src/client/list.js';

const ADDRESS = '127.0.0.1:7233';

/** An error as gRPC makes it. */
function grpcError(code: number): Error {
  return Object.assign(new Error(`code ${code}`), { code, details: 'x', metadata: {} });
}

test.each([4, 14])('gRPC code %j in a list means that the server does not answer', (code) => {
  const cause = grpcError(code);
  expect(listError(cause, ADDRESS)).toBeInstanceOf(NoServerError);
  expect(listError(new Error('wrapped', { cause }), ADDRESS)).toBeInstanceOf(NoServerError);
});

test.each([
  ['a refused query', grpcError(3), 'the server does not list the runs'],
  ['a missing permission', grpcError(7), 'the server does not list the runs'],
  ['a mistake in the code', new TypeError('x is not a function'), 'listed: x is not a function'],
  ['a closed connection', new Error('Channel has been shut down'), 'Channel has been shut down'],
  ['no error', 'text', 'listed: text'],
])('%s in a list does not', (_name, error, message) => {
  const failure = listError(error, ADDRESS);
  expect(failure).toBeInstanceOf(ServiceError);
  expect(failure.message).toContain(message);
});
