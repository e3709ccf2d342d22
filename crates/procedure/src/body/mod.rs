//! Bodies of routines: variables, control flow, errors; bound from their tree and run.
