import fc from 'fast-check';

/**
 * Any character. fast-check's own unit `binary` generates the same ones, but takes two seconds of
 * CPU time per process for a table of them all.
 */
export const anyCharacter = fc
  .oneof(fc.nat(0x7f), fc.nat(0x10_f7ff))
  .map((index) => String.fromCodePoint(index < 0xd800 ? index : index + 0x800));

/** Any string without unpaired surrogates. */
export const anyString = (lengths: { readonly maxLength?: number } = {}): fc.Arbitrary<string> =>
  fc.string({ ...lengths, unit: anyCharacter });
