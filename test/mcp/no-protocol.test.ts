import { expect, onTestFinished, test } from 'vitest';
import { type McpServer, mcpServer } from '../../src/mcp/mcp-server.js';
import { NoProtocolError } from '../../src/mcp/connection.js';
import { programServer } from '../support/banner-server.js';
import { freePort } from '../support/free-port.js';
import { type McpSession, createSession } from '../../src/mcp/session.js';

function sessionOf(server: McpServer): McpSession {
  const session = createSession(server, process.env);
  onTestFinished(() => session.close());
  return session;
}

const program = (code: string): McpServer => programServer(code, { connectTimeout: 2_000 });

const failureOf = async (server: McpServer): Promise<unknown> =>
  await sessionOf(server)
    .listing({ maxAgeMs: 0 })
    .then(
      () => null,
      (error: unknown) => error,
    );

test('a program that writes no message is quoted, with what to check', async () => {
  const error = await failureOf(
    program("console.log('Listening on\\tport 3000'); setInterval(() => {}, 1000)"),
  );
  expect(error).toBeInstanceOf(NoProtocolError);
  expect(error).toMatchObject({
    message: expect.stringMatching(
      /cannot be reached: .*; it writes to its standard output what is not the protocol \("Listening on port 3000"\), and no message; check `command` and `args`$/,
    ),
  });
});

test('a program that asks for something, without a line end, is quoted, too', async () => {
  const asks = "process.stdout.write('Password:\\u001b[0m '); setInterval(() => {}, 1000)";
  const error = await failureOf(program(asks));
  expect(error).toBeInstanceOf(NoProtocolError);
  expect(error).toMatchObject({
    message: expect.stringContaining('not the protocol ("Password: [0m"), and no message'),
  });
  const session = sessionOf(programServer(asks));
  const failure = async (): Promise<string> =>
    await session.listing({ maxAgeMs: 0, waitMs: 100 }).then(
      () => '',
      (late: Error) => late.message,
    );
  await expect
    .poll(failure, { timeout: 20_000 })
    .toMatch(/has not answered within 100 ms; it writes .* \("Password: \[0m"\), and no message$/);
});

test('the beginning of a message is not taken for other text', async () => {
  const error = await failureOf(
    program(`process.stdout.write('{"jsonrpc":"2.0",'); setInterval(() => {}, 1000)`),
  );
  expect(error).not.toBeInstanceOf(NoProtocolError);
  expect(error).toMatchObject({ message: expect.not.stringContaining('not the protocol') });
});

test('a program that is still starting is quoted to a caller who waits no longer', async () => {
  const session = sessionOf(
    programServer("console.log('Listening on 3000'); setInterval(() => {}, 1000)"),
  );
  const failure = async (): Promise<string> =>
    await session.listing({ maxAgeMs: 0, waitMs: 100 }).then(
      () => '',
      (error: Error) => error.message,
    );
  await expect
    .poll(failure, { timeout: 20_000 })
    .toMatch(
      /has not answered within 100 ms; it writes .* \("Listening on 3000"\), and no message$/,
    );
});

test('a program that writes and ends is quoted, too', async () => {
  const error = await failureOf(program("console.log('busy'); console.error('no luck')"));
  expect(error).not.toBeInstanceOf(NoProtocolError);
  expect(error).toMatchObject({
    message: expect.stringMatching(
      /not the protocol \("busy"\), and no message; it wrote: no luck$/,
    ),
  });
});

test('the reason of a server that nothing listens for is without internals', async () => {
  const port = await freePort();
  const gone = { name: 'gone', transport: 'http', url: `http://127.0.0.1:${port}/mcp` } as const;
  expect(await failureOf(mcpServer(gone))).toMatchObject({
    message: `MCP server "gone" (http://127.0.0.1:${port}) cannot be reached: connect ECONNREFUSED 127.0.0.1:${port}`,
  });
});
