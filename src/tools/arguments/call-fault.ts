/**
 * What a tool throws that stands for a destination elsewhere, when that could not be reached.
 *
 * - `unsent`: nothing has happened, the call may be made again, whatever its effect
 * - `refused`: so it is too, but no other attempt will get through: the key is not right
 * - `unanswered`: it was sent and may have happened; nobody here can tell
 */
export class CallFault extends Error {
  override readonly name = 'CallFault';
  readonly kind: 'unsent' | 'refused' | 'unanswered';

  constructor(kind: CallFault['kind'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}
