// Loaded before a program (`node --import`): its clock is wrong by CLOCK_SHIFT_MS, and jumps by that
// much more with each SIGUSR2, back and forth.
const step = Number(process.env.CLOCK_SHIFT_MS ?? 0);
const Real = Date;
let shift = process.env.CLOCK_STARTS === 'right' ? 0 : step;

process.on('SIGUSR2', () => {
  shift = shift === 0 ? step : shift === step ? -step : 0;
});

globalThis.Date = class extends Real {
  constructor(...parts) {
    if (parts.length === 0) super(Real.now() + shift);
    else super(...parts);
  }
  static now() {
    return Real.now() + shift;
  }
};
