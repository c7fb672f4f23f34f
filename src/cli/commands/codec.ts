import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type CliContext, type Command, EXIT, UsageError } from '../context.js';
import { catchInterrupt } from '../hosting/hosting.js';
import { withOptions } from '../input/options.js';

interface CodecOptions {
  readonly port?: number;
  readonly origin?: readonly string[];
}

const PORT = 8_789;

/** `codec`: decrypts payloads for Temporal's UI and CLI on this machine, until interrupted. */
export const codec: Command<CodecOptions> = {
  declare: (entry) =>
    withOptions(entry, 'port', 'origin').addHelpText(
      'after',
      "\nIn Temporal's UI, put the printed URL into the codec server settings. For the temporal command:\n" +
        '--codec-endpoint URL. The URL contains a token: whoever has it can decrypt payloads while this runs.',
    ),
  async run(context, { port = PORT, origin: origins = [] }) {
    const handler = await createHandler(context, origins);
    const { listen } = await import('../../http/listen.js');
    // The token takes the place of keys, and other machines cannot connect.
    const server = await listen({ fetch: handler.fetch, isVerified: false }, { port });
    try {
      const url = `${server.url}/${handler.token}`;
      context.note(`Codec server: ${url}`);
      if (context.options.json) context.out(JSON.stringify({ url }));
      const interrupt = catchInterrupt();
      if (!interrupt.aborted) await once(interrupt, 'abort');
      return EXIT.completed;
    } finally {
      await server.close();
    }
  },
};

interface Handler {
  readonly token: string;
  readonly fetch: (request: Request) => Promise<Response>;
}

async function createHandler(context: CliContext, origins: readonly string[]): Promise<Handler> {
  const [{ keyringFrom }, { dataConverter }, { codecServer }] = await Promise.all([
    import('../../encryption/keyring.js'),
    import('../../encryption/payload-codec.js'),
    import('../../http/codec-server.js'),
  ]);
  for (const origin of origins) {
    if (URL.canParse(origin) && new URL(origin).origin === origin) continue;
    throw new UsageError(
      `--origin: expected an origin such as https://temporal.example.com, without a path; got ${origin}`,
    );
  }
  const keyring = keyringFrom((await context.config()).encryption, context.env);
  // A UI shows what is in clear as well.
  const lenient = keyring && { ...keyring, required: false };
  const [own] = dataConverter(lenient).dataConverter?.payloadCodecs ?? [];
  if (own === undefined) {
    throw new UsageError(
      'codec: expected keys, got none; set PERDURE_ENCRYPTION_KEYS, or `encryption` in the configuration',
    );
  }
  const token = randomBytes(24).toString('base64url');
  return { token, fetch: codecServer({ codec: own, token, origins }) };
}
