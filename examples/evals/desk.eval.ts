// The same cases with vitest-evals: vitest run --config … desk.eval.ts
import { fileURLToPath } from 'node:url';
import { readRecording, rerun } from 'perdure/testing';
import { expect } from 'vitest';
import { createHarness, createJudge, describeEval, toolCalls } from 'vitest-evals';
import { desk } from './perdure.config.js';

/** What the run did: its answer, and where it did something that was not recorded. */
interface Output {
  readonly [key: string]: string | null;
  readonly answer: string | null;
  readonly divergence: string | null;
}

/** Runs a recorded case with the model; the results of tools are the recorded ones. */
const harness = createHarness<string, Output>({
  name: 'perdure',
  run: async ({ input }) => {
    const file = fileURLToPath(new URL(`cases/${input}.json`, import.meta.url));
    const model = process.env['EVAL_MODEL'] ?? 'gpt-5-mini';
    const { divergence, outcome, recording } = await rerun(await readRecording(file), {
      agent: desk,
      model,
    });
    const messages = recording?.runs[0]?.messages ?? [];
    const { inputTokens = 0, outputTokens = 0 } = outcome?.usage ?? {};
    return {
      output: { answer: outcome?.answer ?? null, divergence: divergence?.text ?? null },
      messages: messages.map((message) =>
        message.role === 'tool'
          ? { role: 'tool', content: message.text, toolCallId: message.callId }
          : {
              role: message.role,
              content: message.text,
              ...('calls' in message &&
                message.calls && {
                  toolCalls: message.calls.map(({ id, name, arguments: args }) => ({
                    id,
                    name,
                    arguments: JSON.parse(args),
                  })),
                }),
            },
      ),
      usage: { model, inputTokens, outputTokens, totalTokens: inputTokens + outputTokens },
    };
  },
});

const brief = createJudge<string, Output>('brief', async ({ output }) => ({
  score: (output.answer ?? '').length < 200 ? 1 : 0,
}));

describeEval('the refund desk', { harness, judges: [brief], judgeThreshold: 1 }, (it) => {
  it('refunds what was lost', async ({ run }) => {
    const result = await run('lost-order');
    expect(result.output.divergence).toBeNull();
    expect(toolCalls(result).map(({ name }) => name)).toEqual(['find_order', 'refund']);
  });

  it('refunds nothing that was delivered', async ({ run }) => {
    const result = await run('delivered-order');
    expect(toolCalls(result).map(({ name }) => name)).toEqual(['find_order']);
  });
});
