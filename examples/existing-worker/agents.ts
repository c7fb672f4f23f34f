import { defineAgent } from 'perdure';
import { z } from 'zod';

export const reviewer = defineAgent({
  name: 'reviewer',
  instructions: 'Decide whether the application has all that the form asks for.',
  output: z.object({ accepted: z.boolean(), reason: z.string() }),
});
