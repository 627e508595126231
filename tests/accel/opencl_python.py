# pyopencl: an array on the device, a kernel from source, element-wise arithmetic and a reduction.
import numpy
import pyopencl
import pyopencl.array

context = pyopencl.create_some_context(interactive=False)
queue = pyopencl.CommandQueue(context)
print("platform:", context.devices[0].platform.name)

host = numpy.arange(10000, dtype=numpy.float32)
device = pyopencl.array.to_device(queue, host)
print("doubled:", float((2 * device).get().sum()))
print("sum:", float(pyopencl.array.sum(device).get()))

program = pyopencl.Program(context, """
    __kernel void square(__global int* x) { int i = get_global_id(0); x[i] = x[i] * x[i]; }
""").build()
numbers = numpy.arange(16, dtype=numpy.int32)
buffer = pyopencl.Buffer(context, pyopencl.mem_flags.READ_WRITE
                         | pyopencl.mem_flags.COPY_HOST_PTR, hostbuf=numbers)
program.square(queue, numbers.shape, None, buffer)
pyopencl.enqueue_copy(queue, numbers, buffer)
print("squares:", numbers.tolist())
