"""Array types by dtype: one set of names for the whole project."""

from typing import Any

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInt64s = npt.NDArray[np.uint64]
UInt32s = npt.NDArray[np.uint32]
UInt16s = npt.NDArray[np.uint16]
Int8s = npt.NDArray[np.int8]
UInt8s = npt.NDArray[np.uint8]
Float64s = npt.NDArray[np.float64]
Float32s = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]
