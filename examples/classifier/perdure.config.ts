// A classifier: one model call, and the probability of each class, from the logprobs of the reply's first
// token. For a model without logprobs, use classify([…], { samples: 10 }).
//   perdure run ticket "I was charged twice this month" --config examples/classifier/perdure.config.ts
import { defineAgent, defineConfig } from 'perdure';
import { classify } from 'perdure/output';

export default defineConfig({
  agents: [
    defineAgent({
      name: 'ticket',
      instructions: 'You sort the tickets of a software company.',
      output: classify(['something is broken', 'something about money', 'a question', 'spam']),
      attempts: 3,
    }),
  ],
});
