/** What was given cannot be done; the message names field, value and cure. Nothing was sent anywhere. */
export class InputError extends Error {
  override readonly name = 'InputError';
}
