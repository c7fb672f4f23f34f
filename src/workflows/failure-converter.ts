import { DefaultFailureConverter } from '@temporalio/common';

/**
 * How the workflow records the messages of its failures: as text, or as payloads, which a codec
 * encrypts. A worker that encrypts changes this word in the code that it loads, because workflow code
 * cannot know the worker's options (`sealedCode` in worker/bundle.ts).
 */
const FORM: string = 'perdure: failures in clear';

/** Temporal's default converter, which encodes messages and stack traces for a worker that encrypts. */
export const failureConverter = new DefaultFailureConverter({
  encodeCommonAttributes: FORM.endsWith('coded'),
});
