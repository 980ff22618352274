# The boot program of a guest that does nothing but write numbers to its disk and say so: see writer.go. It needs nothing but the BIOS, boots
# in a fraction of a second, hears its power button, and lets go a device that is to be unplugged.
	.code16
	.globl _start
	.equ SLOTS, 64
	.equ BUFFER, 0x8000
	.equ STRIDE, 128		# sectors from slot to slot, one cluster of qcow2
	.equ PORT, 0x3f8
_start:
	cli
	xor %ax, %ax
	mov %ax, %ds
	mov %ax, %es
	mov %ax, %ss
	mov $0x7c00, %sp
	sti
	cld
	mov %dl, drive

	# A number of this boot: clock ticks of the processor, and the time of day.
	rdtsc
	xor %eax, nonce
	xor %bx, %bx
1:	mov %bl, %al
	out %al, $0x70
	in $0x71, %al
	shr $1, %bl
	xor %al, nonce+1(%bx)
	shl $1, %bl
	add $2, %bl
	cmp $6, %bl
	jb 1b

	mov $0x602, %dx			# hear the power button
	mov $0x0100, %ax
	out %ax, %dx

	# The highest number on the disk.
	xor %ebp, %ebp
	xor %ecx, %ecx
2:	mov $0x42, %ah
	call disk
	mov BUFFER, %eax
	cmp %ebp, %eax
	jbe 3f
	mov %eax, %ebp
3:	inc %cx
	cmp $SLOTS, %cx
	jb 2b
	mov %ebp, number

	# How many of the numbers before it are not there.
	xor %edi, %edi
	mov %ebp, %ecx
4:	jecxz 6f
	mov %ebp, %eax
	sub %ecx, %eax
	cmp $SLOTS, %eax
	jae 6f
	mov $0x42, %ah
	call disk
	cmp BUFFER, %ecx
	je 5f
	inc %di
5:	dec %ecx
	jmp 4b
6:	mov $booted, %si
	call line
	mov %edi, %eax
	call hex
	call newline

turn:
	mov number, %ecx
	inc %ecx
	mov $0x42, %ah
	call disk
	mov %ecx, %eax
	sub $SLOTS, %eax
	ja 1f
	xor %eax, %eax
1:	cmp BUFFER, %eax
	je 2f
	mov $lost, %si
	call line
	mov BUFFER, %eax
	call hex
	call newline
2:	mov %ecx, BUFFER
	mov nonce, %eax
	mov %eax, BUFFER+4
	mov $0x43, %ah
	call disk
	mov %ecx, number
	mov $wrote, %si
	call line
	call newline

	mov 0x46c, %bx			# four ticks of 55 ms
	add $4, %bx
wait:	hlt
	mov $0x600, %dx
	in %dx, %ax
	test $0x01, %ah
	jz 1f
	out %ax, %dx
	mov $0x604, %dx			# off
	mov $0x2000, %ax
	out %ax, %dx
1:	mov $0xae10, %dx		# let go what is to be unplugged
	xor %eax, %eax
	out %eax, %dx
	mov $0x04, %dl
	in %dx, %eax
	test %eax, %eax
	jz 2f
	mov $0x08, %dl
	out %eax, %dx
2:	mov 0x46c, %ax
	sub %bx, %ax
	js wait
	jmp turn

# disk reads (AH 0x42) or writes (0x43) the slot of the number in ECX. It tries until it has.
disk:
	pushal
	mov %cx, %bx
	and $(SLOTS-1), %bx
	inc %bx
	shl $7, %bx
	mov %bx, packet+8
	mov $0, %al
	mov $packet, %si
	mov drive, %dl
	push %ax
	int $0x13
	pop %ax
	popal
	jc disk
	ret

# line says a word, the number of this boot, and the number on the disk.
line:
	lodsb
	test %al, %al
	jz 1f
	call put
	jmp line
1:	mov nonce, %eax
	call hex
	mov number, %eax
	# falls through
hex:
	push %cx
	mov $8, %cx
1:	rol $4, %eax
	push %ax
	and $15, %al
	cmp $10, %al
	sbb $0x69, %al
	das
	call put
	pop %ax
	loop 1b
	pop %cx
	mov $' ', %al
put:
	push %dx
	push %ax
	mov $(PORT+5), %dx
1:	in %dx, %al
	test $0x20, %al
	jz 1b
	pop %ax
	mov $(PORT & 0xff), %dl
	out %al, %dx
	pop %dx
	ret
newline:
	mov $'\n', %al
	jmp put

booted:	.asciz "boot "
wrote:	.asciz "wrote "
lost:	.asciz "lost "
nonce:	.long 0
number:	.long 0
drive:	.byte 0
	.balign 2
packet:	.byte 16, 0
	.word 1, BUFFER, 0
	.quad 0
	.org 510
	.word 0xaa55
