public class Peer { public static void main(String[] a) { System.out.println("hello"); } }
